-- Tells the nodes of a cluster from each other whose limits are configured differently. Nodes with equal settings have one
-- digest and one text.
--
-- KEYS   ZSET digest of settings -> when a node with them was last heard of, in microseconds since 1970
--        HASH digest of settings -> their text
-- ARGV   the time; digest of this node's settings; microseconds after which silent settings no longer count; their text, or
--        nothing; digests whose texts this node lacks
-- reply  1 if the text of this node's settings is known, else 0; for each digest of others: the digest; its text, if it was
--        asked for and is known, or nothing

local heard, texts, own = KEYS[1], KEYS[2], ARGV[2]
-- Of so many others a node hears.
local MOST = 20

local function whole(number)
  return string.format('%.0f', number)
end

for _, silent in ipairs(redis.call('ZRANGEBYSCORE', heard, '-inf', whole(now - ARGV[3]))) do
  redis.call('ZREM', heard, silent)
  redis.call('HDEL', texts, silent)
end
redis.call('ZADD', heard, whole(now), own)
if ARGV[4] ~= '' then
  redis.call('HSET', texts, own, ARGV[4])
end
local expires = whole(math.ceil(ARGV[3] / 1000) + padding)
redis.call('PEXPIRE', heard, expires)
redis.call('PEXPIRE', texts, expires)

local wanted = {}
for i = 5, #ARGV do wanted[ARGV[i]] = true end
local reply = { redis.call('HEXISTS', texts, own) }
local digests = redis.call('ZRANGE', heard, 0, -1)
table.sort(digests)
for _, digest in ipairs(digests) do
  if digest ~= own and #reply < 2 * MOST then
    reply[#reply + 1] = digest
    reply[#reply + 1] = wanted[digest] and redis.call('HGET', texts, digest) or ''
  end
end
return reply
