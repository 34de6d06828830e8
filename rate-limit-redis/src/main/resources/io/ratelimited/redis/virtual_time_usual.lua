-- Beginning of the script of virtual_time.lua: the usual calls, in few steps. Callers who want the same, given once, take
-- permits of one bucket that pays for itself, as it was stored under these parameters. What each of them is told follows
-- from the state before the first. The same may be asked of several keys at once, each by itself. Whatever else is asked
-- of one key goes on below, where it is explained; of several, it is left to be asked again.
--
-- Every microsecond counts here: text becomes a number by adding 0, and the expiry is text, as SET would write it slower.
--
-- KEYS   one or several
-- ARGV   as in decide.lua, for one limit and equal calls
-- reply  now; for each key: V and its part before the first, epoch, how many are admitted: none behind the first who is
--        not; -1 if the key is to be asked by itself

local longest = #ARGV == 20 and ARGV[2] == 'take' and ARGV[3] == '1' and ARGV[12] == '1' and tonumber(ARGV[20])
if longest then
  local ceil, floor, format, sub = math.ceil, math.floor, string.format, string.sub
  local pack, unpack, pcall = struct.pack, struct.unpack, redis.pcall
  local meta, one, depth, depth_part = ARGV[5] .. ' ', ARGV[7] + 0, ARGV[8] + 0, ARGV[9] + 0
  local calls, a, b = ARGV[16] + 0, ARGV[18] + 0, ARGV[19] + 0
  local low, low_part, at = now - depth, 0, #meta + 1
  if depth_part > 0 then
    low, low_part = low - 1, one - depth_part
  end
  local reply, n = { now }, 1
  for i = 1, #KEYS do
    local value = pcall('GET', KEYS[i])
    local v, part, epoch, taken, written = nil, 0, now, -1, nil
    if not value then
      v, part = low, low_part
    elseif type(value) == 'string' and sub(value, 1, at - 1) == meta then
      local size = #value - at
      if size == 13 then
        v, epoch = unpack('>I7I7', value, at)
      elseif size == 18 then
        v, epoch, part = unpack('>I7I7I5', value, at)
      elseif size == 20 then
        v, epoch, written = unpack('>I7I7I7', value, at)
      elseif size == 25 then
        v, epoch, part, written = unpack('>I7I7I5I7', value, at)
      end
      if v and (written or v) > now then
        -- The clock has stepped back.
        v = nil
      elseif v and (v < low or (v == low and part < low_part)) then
        v, part = low, low_part
      end
    end
    if v and (now - v + 1) * one < 9007199254740992 then
      local after, after_part = v + calls * a, part + calls * b
      taken = calls
      if after_part >= one then
        local carry = floor(after_part / one)
        after, after_part = after + carry, after_part - carry * one
      end
      if after - now + (after_part > 0 and 1 or 0) > longest then
        after, after_part, taken = v, part, 0
        for call = 1, calls do
          local then_v, then_part = after + a, after_part + b
          if then_part >= one then
            then_v, then_part = then_v + 1, then_part - one
          end
          if then_v - now + (then_part > 0 and 1 or 0) > longest then break end
          after, after_part, taken = then_v, then_part, call
        end
      end
      if taken > 0 then
        local reset, over = after + depth - now, after_part + depth_part
        if over > one then
          reset = reset + 2
        elseif over > 0 then
          reset = reset + 1
        end
        value = meta .. pack('>I7I7', after, epoch)
        if after_part > 0 then value = value .. pack('>I5', after_part) end
        if slack > 0 or after > now or (after == now and after_part > 0) then value = value .. pack('>I7', now) end
        if pcall('SET', KEYS[i], value, 'PX', format('%.0f', ceil(reset / 1000) + padding)).err then taken = -1 end
      end
    end
    if taken >= 0 or #KEYS > 1 then
      reply[n + 1], reply[n + 2], reply[n + 3], reply[n + 4] = v or 0, part, epoch, taken
      n = n + 4
    end
  end
  if n > 1 then return reply end
end
