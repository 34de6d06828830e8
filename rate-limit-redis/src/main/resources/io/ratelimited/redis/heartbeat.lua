-- Counts the nodes of the cluster.
--
-- KEYS   ZSET name of a node -> when it was last heard of, in microseconds since 1970
-- ARGV   the time; name of this node, or nothing to leave; microseconds after which a silent node no longer counts; name to
--        remove
-- reply  the number of nodes

if ARGV[2] ~= '' then
  redis.call('ZADD', KEYS[1], string.format('%.0f', now), ARGV[2])
end
if ARGV[4] then
  redis.call('ZREM', KEYS[1], ARGV[4])
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now - ARGV[3]))
redis.call('PEXPIRE', KEYS[1], math.ceil(ARGV[3] / 1000))
return { redis.call('ZCARD', KEYS[1]) }
