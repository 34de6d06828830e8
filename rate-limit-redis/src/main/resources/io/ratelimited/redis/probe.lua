-- Whether Redis decides again: does what every script does, so that a server which only answers does not pass.
--
-- KEYS   STRING, for a second
-- reply  1

if redis.replicate_commands then redis.replicate_commands() end
local time = redis.call('TIME')
redis.call('SET', KEYS[1], time[1], 'PX', 1000)
return { 1 }
