-- Constants, and the frame that the families of algorithms fill in.
--
-- All numbers are integers below 2^53, which a Lua number holds exactly; they are written with %.0f because tostring()
-- keeps 14 digits only. Packed numbers are big-endian integers of 7 bytes.
--
-- The file of a family defines a function that returns the family: a table of functions over the state s of one key.
--   open(key, p)         reads the state, or makes that of a key never seen; p is where the family's arguments begin in ARGV;
--                        returns the state, and where the next arguments begin
--   decide(s, permits, a, b, longest)  the wait granted, or minus the retry-after, NEVER or UNKNOWN; changes nothing
--   take(s, permits, tail)  takes what was decided last; returns the mark that cancel needs
--   cancel(s, permits, a, b, mark)  gives back permits of a grant, all of them or a part
--   charge(s, permits, a, b)  takes permits that have been used already, into debt if need be
--   report(s, reply, outcome, mark)  adds a decision to the reply; mark is nil if nothing was taken
--   charged(s, charges)  the state of a key that was charged so, as evidence: charges is a list of { instant, permits } in order,
--                        from which those are dropped that do not count any more. Only for decide, by families that can block by
--                        charge; and how long from now on anything that is known now may count
--   save(s)              writes the state, to expire when it equals that of a key never seen
-- The name of a key says its algorithm, and the period, slots and zone of a window. So the state of a window holds counts of
-- spent permits only, which every number of permits can be compared with. The state of a bucket or warm-up begins with its
-- parameters, meta: a call with other parameters converts it.
-- s.found: the state was stored under these parameters, so that a mark can refer to it.
-- s.changed: the state is saved even if the call is refused, after a conversion and after the clock has stepped back. A
-- failover can make it step back, and a key must not stay frozen until the clock has caught up.

local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min
local format, match, sub = string.format, string.match, string.sub

-- The longest time that a call waits, and the two refusals that have no retry-after.
local FAR = 1152921504606846
local NEVER = -9007199254740991
local UNKNOWN = -9007199254740990

-- The largest count of permits: no later call can tell it from more.
local MOST = 4503599627370496

-- So many instants are known at which calls of a key were charged.
local MOST_CHARGES = 64

-- Defined in decide.lua, behind the fast path of virtual_time.lua, which does not pay for them.
local op, behind, millis, text, read, find, report
