-- Beginning of the script of virtual_time.lua: the usual call, in few steps. One caller takes permits of one bucket, as it
-- was stored under these parameters, and may go at once. Whatever else is asked goes on below, where it is explained.

if ARGV[2] == 'take' and ARGV[3] == '1' and ARGV[16] == '1' and ARGV[12] == '1' and ARGV[9] == '0' and ARGV[19] == '0'
    and tonumber(ARGV[20]) then
  local now, padding = tonumber(ARGV[1]), 3600000
  if not now then
    local time = redis.call('TIME')
    now, padding = time[1] * 1000000 + time[2], 0
  end
  local value, meta, depth = redis.pcall('GET', KEYS[1]), ARGV[5] .. ' ', tonumber(ARGV[8])
  local low = now - depth
  local v, epoch
  if not value then
    v, epoch = low, now
  elseif type(value) == 'string' and #value == #meta + 14 and string.sub(value, 1, #meta) == meta then
    v, epoch = struct.unpack('>I7I7', value, #meta + 1)
    if v > now then
      v = nil
    elseif v < low then
      v = low
    end
  end
  if v then
    local after = v + ARGV[18]
    local left = (now - after) * ARGV[7]
    if after <= now and left < 9007199254740992 then
      local reset = after + depth - now
      redis.call('SET', KEYS[1], meta .. struct.pack('>I7I7', after, epoch), 'PX', math.ceil(reset / 1000) + padding)
      return { 0, math.min(tonumber(ARGV[15]), math.floor(left / ARGV[14])), reset,
        string.format('%.0f+0@%.0f', after, epoch) }
    end
  end
end
