-- Counts the nodes of the cluster.
--
-- KEYS   ZSET name of a node -> when it was last heard of, in microseconds since 1970; "origin" -> when the first node began
--        HASH of changes.lua
-- ARGV   the time; name of this node, or nothing to leave; microseconds after which a silent node no longer counts; name to
--        remove
-- reply  the number of nodes; the origin; the version of the record, or the error that keeps it

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
local version = redis.pcall('HGET', KEYS[2], 'version')
if type(version) == 'table' and not string.find(version.err, 'WRONGTYPE', 1, true) then
  return { nodes, math.min(origin, now), version.err }
end
return { nodes, math.min(origin, now), tonumber(version) or 0 }
