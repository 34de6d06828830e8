-- Constants, and the frame that the algorithms fill in. The file of each is the body of a function that returns its family.
--
-- All numbers are integers below 2^53, which a Lua number holds exactly; they are written with %.0f because tostring()
-- keeps 14 digits only.
--
-- A family is a table of functions over the state s of one key:
--   open(key, meta, p)   reads the state; p is where the parameters begin in ARGV; nil when other parameters stored it
--   decide(s, permits, a, b, wait)  the wait granted, or minus the retry-after, NEVER or UNKNOWN; changes nothing
--   take(s, permits, a)  takes what was decided last; returns the mark that cancel needs
--   cancel(s, permits, a, b, mark)  gives back permits of a grant, all of them or a part
--   charge(s, permits, a, b)  takes permits that have been used already, into debt if need be
--   remaining(s), reset(s)
--   save(s)              writes the state, to expire when it equals that of a key never seen
--   leave(key, meta)     what is left of a budget stored under other parameters
--   resume(key, meta, p, budget)  the state that goes on with it
-- A budget: left of what can be stored; permit, one of them (0 when what is stored is no permits); credit, whether one more
-- call may go as soon as there is no debt; debt in permits, for which nothing is left.
-- s.lazy: a refusal leaves the state as it was found, since what was spent leaves it no later than the refusal says. Where
-- nodes with different windows take turns, it would else be spent anew at each turn and never leave.
-- Not if the clock has stepped back: what is not written with the new time would stay until the clock has caught up.
-- s.changed asks for the state to be saved even if the call is refused: after the clock has stepped back, which a
-- failover can make it do, and which must not freeze a key until the clock has caught up.

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

-- The value of a key that holds a string; nil if there is none, false if it holds something else.
local function get(key)
  local value = redis.pcall('GET', key)
  if type(value) == 'string' then return value end
  if type(value) == 'table' and value.err then
    if match(value.err, 'WRONGTYPE') then return false end
    error(value.err, 0)
  end
  return nil
end

-- The same budget for a limit that lets a call go on credit, or for one that does not: the permit of that call is left in
-- one and stored in the other.
local function budget_as(budget, credit)
  local left, of, permit, debt = budget.left, budget.of, budget.permit, budget.debt
  if budget.credit == credit then return budget end
  if credit and debt == 0 and left >= permit then
    left, of = left - permit, of - permit
  elseif credit then
    left, of, permit, debt = 0, 1, 1, debt + 1 - left / permit
  elseif debt > 1 then
    debt = debt - 1
  elseif debt > 0 or permit == 0 then
    left, of, permit, debt = 1 - debt, 1, 1, 0
  else
    left, of = left + permit, of + permit
  end
  return { left = left, of = of, permit = permit, credit = credit, debt = debt }
end

-- What is left in another state: as many permits, or the same share of what that can store if it can store less; never more
-- than there was. One permit is a unit of its capacity. Rounded down.
--
-- again  the limit has changed before: as many permits as it can store. Nodes with different limits that take turns would
--        else keep the share of the share, and soon nothing.
local function budget_left(budget, capacity, unit, again)
  if budget.permit == 0 or budget.of == 0 then return 0 end
  local shrinks = capacity * budget.permit < budget.of * unit and not again
  if shrinks then
    return budget.left == budget.of and capacity or floor(budget.left * capacity / budget.of)
  end
  return min(capacity, floor(budget.left * unit / budget.permit))
end

-- The parameters under which a key was stored: the first word, whatever the type.
local function meta_of(key)
  local kind = redis.call('TYPE', key).ok
  local first
  if kind == 'string' then
    first = redis.call('GET', key)
  elseif kind == 'hash' then
    first = redis.call('HGET', key, 'm')
  elseif kind == 'list' then
    first = redis.call('LINDEX', key, 0)
  end
  return first and match(first, '^%S+') or ''
end

