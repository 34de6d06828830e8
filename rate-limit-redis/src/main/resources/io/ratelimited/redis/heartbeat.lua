-- Counts the nodes of the cluster.
--
-- KEYS   ZSET name of a node -> when it was last heard of, in microseconds since 1970; "origin" -> when the first node began
--        HASH of changes.lua
-- ARGV   the time; name of this node, or nothing to leave; microseconds after which a silent node no longer counts; name to
--        remove
-- reply  the number of nodes; the origin; the position of the last change, or the error that keeps it; the sum of all

local origin = tonumber(redis.call('ZSCORE', KEYS[1], 'origin') or now)
if ARGV[2] ~= '' then
  redis.call('ZADD', KEYS[1], string.format('%.0f', now), ARGV[2])
end
if ARGV[4] then
  redis.call('ZREM', KEYS[1], ARGV[4])
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now - ARGV[3]))
redis.call('ZREM', KEYS[1], 'origin')
local nodes = redis.call('ZCARD', KEYS[1])
if nodes > 0 then
  redis.call('ZADD', KEYS[1], string.format('%.0f', math.min(origin, now)), 'origin')
  redis.call('PEXPIRE', KEYS[1], math.ceil(ARGV[3] / 1000))
end
-- Nodes are counted even if the rest is refused.
local position = redis.pcall('HGET', KEYS[2], 'version')
if type(position) == 'table' and not string.find(position.err, 'WRONGTYPE', 1, true) then
  return { nodes, math.min(origin, now), position.err }
end
local sum = redis.call('HGET', KEYS[2], 'sum')
return { nodes, math.min(origin, now), tonumber(position) or 0, tonumber(sum) or 0 }
