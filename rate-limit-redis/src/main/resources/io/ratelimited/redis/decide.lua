-- End of the script: decides calls in order, each under all limits or under none, and writes each state once.
--
-- KEYS   one a limit; all of one caller, and so in one hash slot
-- ARGV   1  the time, as time.lua says
--        2  take | peek | cancel | charge | renew
--        3  number of limits; for each: letter of its family, meta (its parameters as they are stored with the state),
--           number of parameters, parameters
--        then the number of calls; for each call and limit: permits, a, b, longest wait (cancel: the mark); once if all
--        calls are equal. Among calls to take, one whose wait is "r<mark>" gives permits back, under a single limit
-- reply  for each call and limit to take or peek: outcome, remaining, reset, mark; times in microseconds; an outcome is the
--        wait, or minus the retry-after

local families = {}

-- The family of a letter, by the function that Script.java has for it. Making the functions of a family costs more than a
-- call of one of them, and most calls need one family.
local function family_of(letter)
  if not families[letter] then families[letter] = makers[letter]() end
  return families[letter]
end

local op = ARGV[2]
local limits = {}
local at

local function open(i)
  local p = at + 3
  local family = family_of(ARGV[at])
  limits[i] = { family = family, state = family.open(KEYS[i], ARGV[at + 1], p) }
  at = p + tonumber(ARGV[at + 2])
end

-- All limits at one time, the latest that any of them was written at.
repeat
  local before = now
  at = 4
  for i = 1, tonumber(ARGV[3]) do
    open(i)
  end
until now == before

local reply = {}
local calls = tonumber(ARGV[at])
local first_call = at + 1
local equal = #ARGV == at + 4 * #limits

for call = 1, calls do
  at = first_call + (equal and 0 or 4 * #limits * (call - 1))
  local first = at
  local refused = false
  for i = 1, #limits do
    local family, s = limits[i].family, limits[i].state
    local permits, a = tonumber(ARGV[at]), ARGV[at + 1]
    local b, last = tonumber(ARGV[at + 2]), ARGV[at + 3]
    local back = op == 'take' and match(last, '^r(.*)$')
    if back then
      if family.cancel(s, permits, tonumber(a) or a, b, back) then s.changed = true end
      limits[i].outcome = 0
      refused = true
    elseif op == 'take' or op == 'peek' then
      local outcome = family.decide(s, permits, tonumber(a) or a, b, tonumber(last))
      limits[i].outcome = outcome
      refused = refused or outcome < 0
    elseif op == 'charge' then
      family.charge(s, permits, tonumber(a), b)
      s.changed = true
    elseif op == 'renew' then
      family.renew(s, permits, a, b)
      s.changed = true
    elseif family.cancel(s, permits, tonumber(a) or a, b, last) then
      s.changed = true
    end
    at = at + 4
  end
  if op == 'take' or op == 'peek' then
    for i = 1, #limits do
      local family, s = limits[i].family, limits[i].state
      local mark = 0
      if op == 'take' and not refused then
        mark = family.take(s, tonumber(ARGV[first + 4 * (i - 1)]), ARGV[first + 4 * (i - 1) + 1])
        s.changed = true
      end
      local n = #reply
      reply[n + 1] = limits[i].outcome
      reply[n + 2] = family.remaining(s)
      reply[n + 3] = family.reset(s)
      reply[n + 4] = mark
    end
  end
end

if op ~= 'peek' then
  for i = 1, #limits do
    local s = limits[i].state
    if s.changed then limits[i].family.save(s) end
  end
end
return reply
