-- The arguments of usual calls, as decide.lua reads them.
--
-- ARGV   1  the time, as time.lua says
--        2  meta
--        3  parameters of virtual_time.lua: one, depth, depth part, step, burst; big-endian integers of 7 bytes, like the next
--        4  the number of calls; for each of them: longest wait, a, b, permits

if #ARGV == 4 then
  local one, depth, depth_part, step, burst = struct.unpack('>I7I7I7I7I7', ARGV[3])
  local calls, longest, a, b, permits = struct.unpack('>I7I7I7I7I7', ARGV[4])
  local usual = {
    ARGV[1], 'take', '1', string.sub(ARGV[2], 1, 1), ARGV[2], 9, one, depth, depth_part, -1, 0, '1', -1, step, burst, calls,
    permits, a, b, longest
  }
  for i, argument in ipairs(usual) do ARGV[i] = argument end
end
