-- Counts the nodes of the cluster.
--
-- KEYS   ZSET name of a node -> when it was last heard of, in microseconds since 1970
-- ARGV   name of this node, or nothing to leave; microseconds after which a silent node no longer counts; name to remove
-- reply  the number of nodes

if redis.replicate_commands then redis.replicate_commands() end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
if ARGV[1] ~= '' then
  redis.call('ZADD', KEYS[1], string.format('%.0f', now), ARGV[1])
end
if ARGV[3] then
  redis.call('ZREM', KEYS[1], ARGV[3])
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now - ARGV[2]))
redis.call('PEXPIRE', KEYS[1], math.ceil(ARGV[2] / 1000))
return { redis.call('ZCARD', KEYS[1]) }
