-- Constants, and the frame that the algorithms fill in. The file of each is the body of a function that returns its family.
--
-- All numbers are integers below 2^53, which a Lua number holds exactly; they are written with %.0f because tostring()
-- keeps 14 digits only.
--
-- A family is a table of functions over the state s of one key:
--   open(key, meta, p)   reads the state, or makes that of a key never seen; p is where the parameters begin in ARGV
--   decide(s, permits, a, b, wait)  the wait granted, or minus the retry-after, NEVER or UNKNOWN; changes nothing
--   take(s, permits, a)  takes what was decided last; returns the mark that cancel needs
--   cancel(s, permits, a, b, mark)  gives back permits of a grant, all of them or a part
--   charge(s, permits, a, b)  takes permits that have been used already, into debt if need be
--   remaining(s), reset(s)
--   save(s)              writes the state, to expire when it equals that of a key never seen
-- The name of a key says its algorithm, and the period, slots and zone of a window. So the state of a window holds counts of
-- spent permits only, which every number of permits can be compared with. The state of a bucket or warm-up begins with its
-- parameters, meta: whoever finds others converts it.
-- s.found: the state was stored under these parameters, so that a mark can be of it.
-- s.changed asks for the state to be saved even if the call is refused: after a conversion, and after the clock has stepped
-- back, which a failover can make it do, and which must not freeze a key until the clock has caught up.

local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min
local format, match, sub = string.format, string.match, string.sub

-- The longest time anyone waits, and the two refusals that have no retry-after.
local FAR = 1152921504606846
local NEVER = -9007199254740991
local UNKNOWN = -9007199254740990

-- The largest count of permits: no later call can tell it from more.
local MOST = 4503599627370496

-- Whether the clock has stepped back behind the time at which a state was written. By as little as the clocks of two nodes
-- may differ it has not: then the call is decided at that time, as if it had come right after. decide.lua begins anew.
local latest = now + slack
local function behind(written)
  if written > now and written <= latest then now = written end
  return written > now
end

local function millis(micros)
  return max(1, ceil(micros / 1000)) + padding
end

local function text(number)
  return format('%.0f', number)
end

-- The reply to a command that reads a key; nil if the key holds another type. That is nothing of ours, and is removed unless
-- the call only looks.
local function read(command, key, ...)
  local reply = redis.pcall(command, key, ...)
  if type(reply) == 'table' and reply.err then
    if not match(reply.err, 'WRONGTYPE') then error(reply.err, 0) end
    if ARGV[2] ~= 'peek' then
      redis.call('DEL', key)
      if redis.log then redis.log(redis.LOG_WARNING, 'rate limit: ' .. key .. ' held another type and begins anew') end
    end
    return nil
  end
  return reply
end
