-- Whether Redis decides again: does what every script does, so that a server which only answers does not pass.
--
-- KEYS   STRING, for a second
-- ARGV   the time
-- reply  1

redis.call('SET', KEYS[1], '1', 'PX', 1000)
return { 1 }
