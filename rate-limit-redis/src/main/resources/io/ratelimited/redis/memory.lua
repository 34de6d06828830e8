-- Whether this server removes keys when its memory is full.
--
-- ARGV   the time
-- reply  maxmemory-policy; the number of keys that it has removed since it began. Nothing where it refuses INFO

local memory, stats = redis.pcall('INFO', 'memory'), redis.pcall('INFO', 'stats')
if type(memory) ~= 'string' or type(stats) ~= 'string' then return {} end
return { string.match(memory, 'maxmemory_policy:([%w-]+)'), tonumber(string.match(stats, 'evicted_keys:(%d+)')) }
