-- Pauses that the nodes of a cluster share. The later of two ends wins.
--
-- KEYS   ZSET name of a pause -> when it ends, in microseconds since 1970; it expires with the last of them
-- ARGV   the time; to begin a pause: its name; how long it lasts, in microseconds; the most pauses that there may be
-- reply  the time; for each pause: its name; when it ends; without the one to begin if there are as many as there may be

local pauses = KEYS[1]

local function whole(number)
  return string.format('%.0f', number)
end

if ARGV[2] then
  redis.call('ZREMRANGEBYSCORE', pauses, '-inf', whole(now))
  local ending = now + ARGV[3]
  local before = tonumber(redis.call('ZSCORE', pauses, ARGV[2]) or 0)
  local has_room = before > 0 or redis.call('ZCARD', pauses) < tonumber(ARGV[4])
  if ending > before and has_room then
    redis.call('ZADD', pauses, whole(ending), ARGV[2])
    local last = redis.call('ZREVRANGE', pauses, 0, 0, 'WITHSCORES')
    redis.call('PEXPIRE', pauses, whole(math.ceil((last[2] - now) / 1000) + padding))
  end
end

local reply = { now }
local found = redis.call('ZRANGEBYSCORE', pauses, '(' .. whole(now), '+inf', 'WITHSCORES')
for i = 1, #found, 2 do
  reply[i + 1] = found[i]
  reply[i + 2] = tonumber(found[i + 1])
end
return reply
