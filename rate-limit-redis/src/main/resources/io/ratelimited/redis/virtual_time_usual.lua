-- Beginning of the script of virtual_time.lua: the usual calls, in few steps. Callers who want the same, given once, take
-- permits of one bucket that pays for itself, as it was stored under these parameters. Each decision follows from the state
-- before the first. The same may be asked about several keys, each decided by itself. Or one call takes permits under several
-- limits, of all buckets or of none. Whatever else is asked about one key or several limits goes on below, where it is
-- explained; of several keys under one limit, such a one is left as it was, to be asked about alone.
--
-- Every microsecond counts here: numbers come packed, because each argument is work for the server, and the expiry is text, as
-- SET would write it slower.
--
-- KEYS   one or several; one a limit if there are several limits
-- ARGV   1 + 3 a limit, which usual_arguments.lua explains
-- reply  now; V and its part before the first, epoch, how many are admitted: none behind the first who is not. For several keys
--        such a reply for each, or -1 for one that is left

local usual = #ARGV[3] == 35
if usual then
  local ceil, floor, format, sub = math.ceil, math.floor, string.format, string.sub
  local pack, unpack, pcall = struct.pack, struct.unpack, redis.pcall
  local several = #ARGV > 4
  local meta, one, depth, depth_part, calls, longest, a, b, low, low_part, at
  local replies, values, expiries, decided, admitted = {}, {}, {}, 0, 0
  for i, key in ipairs(KEYS) do
    if several or i == 1 then
      local limit = 3 * i - 1
      meta, one, depth, depth_part = ARGV[limit] .. ' ', unpack('>I7I7I7', ARGV[limit + 1])
      calls, longest, a, b = unpack('>I7I7I7I7', ARGV[limit + 2])
      low, low_part, at = now - depth, 0, #meta + 1
      if depth_part > 0 then
        low, low_part = low - 1, one - depth_part
      end
    end
    replies[i] = -1
    local value = pcall('GET', key)
    local v, part, epoch, written = nil, 0, now, nil
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
      local after, after_part, taken = v + calls * a, part + calls * b, calls
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
      local saved = taken == 0 or several
      if taken > 0 then
        local reset, over = after + depth - now, after_part + depth_part
        if over > one then
          reset = reset + 2
        elseif over > 0 then
          reset = reset + 1
        end
        value = meta .. pack('>I7I7', after, epoch)
        if after_part > 0 then value = value .. pack('>I5', after_part) end
        local overlaps = taken > 1 or v > low or (v == low and part > low_part)
        if overlaps or slack > 0 or after > now or (after == now and after_part > 0) then
          value = value .. pack('>I7', now)
        end
        local lives = ceil(reset / 1000)
        if epoch >= 4503599627370496 then
          -- The parameters have changed, as virtual_time.lua says.
          lives = math.max(lives, redis.call('PTTL', key) - padding + ceil((after - v + 1) / 1000))
        end
        lives = format('%.0f', lives + padding)
        if several then
          values[i], expiries[i] = value, lives
        else
          saved = not pcall('SET', key, value, 'PX', lives).err
        end
      end
      decided, admitted = decided + 1, admitted + taken
      -- What could not be stored is reported below.
      if saved then replies[i] = { now, v, part, epoch, taken } end
    end
  end
  if not several then
    if #KEYS > 1 then return replies end
    if replies[1] ~= -1 then return replies[1] end
  elseif decided == #KEYS then
    for i, key in ipairs(KEYS) do
      if admitted < decided then
        replies[i][5] = 0
      else
        redis.call('SET', key, values[i], 'PX', expiries[i])
      end
    end
    return replies
  end
end
