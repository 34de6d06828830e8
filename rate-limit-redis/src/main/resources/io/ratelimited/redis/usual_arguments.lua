-- The arguments of usual calls, as decide.lua reads them.
--
-- ARGV   1  the time, as time.lua says
--        then for each limit
--           meta
--           parameters of virtual_time.lua: one, depth, depth part, step, burst; big-endian integers of 7 bytes, like the next
--           the number of calls, 1 if there are several limits; for each of them: longest wait, a, b, permits

if usual then
  local arguments, costs, calls = { ARGV[1], 'take', tostring((#ARGV - 1) / 3) }, {}, 1
  local function add(to, ...)
    for _, value in ipairs({ ... }) do to[#to + 1] = value end
  end
  for at = 2, #ARGV, 3 do
    local meta, one, depth, depth_part, step, burst = ARGV[at], struct.unpack('>I7I7I7I7I7', ARGV[at + 1])
    local longest, a, b, permits
    calls, longest, a, b, permits = struct.unpack('>I7I7I7I7I7', ARGV[at + 2])
    add(arguments, 't', meta, 9, one, depth, depth_part, -1, 0, '1', -1, step, burst)
    add(costs, permits, a, b, longest)
  end
  add(arguments, calls, unpack(costs))
  for i, argument in ipairs(arguments) do ARGV[i] = argument end
end
