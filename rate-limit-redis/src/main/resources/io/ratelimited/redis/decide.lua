-- End of the script: decides calls in order, each under all limits or under none, and writes each state once.
--
-- KEYS   one a limit; all of one caller, and so in one hash slot. Several keys under one limit, which virtual_time.lua alone
--        decides, each by itself. Then one for each limit with blocks, as block.lua says
-- ARGV   1  the time, as time.lua says
--        2  take | ask | peek | cancel | keep | charge | renew | offend | settle | impose | forgive, a space, and the letter of each limit's family, as in
--           Script.java; if a limit has blocks, a space and a mark of each limit, as in block.lua
--        then the arguments of each limit, as its family says; then those of each limit with blocks, as block.lua says
--        then the calls, one argument for each group of equal calls under one limit, or for each limit of one call. Packed:
--        number of calls, permits, a, b, longest wait; then a tail: the mark to cancel, or the name of a call in flight. No
--        calls among those to take give permits back. Under a limit with blocks the tail of a call is how long its policy lets
--        it wait, if that is longer than it can now, in microseconds; or ! if it is exempt from blocks; then ? if it is undecided: its
--        other limits may still have it give the permits back. To cancel or keep such a call, its longest wait is the time at
--        which it took them. To offend is to begin a
--        block if such a call would be rejected. To settle is to note what a call was charged, and to begin a block if that
--        leaves no permit for a call that waits longest. Its tail: when the call reserved, when it could go, how many of these permits
--        it was charged, or gives back if that is less than 0, and how many more; 0 for a time is now; then ! if it begins no
--        block. To impose is to have a block of level
--        "permits" that ends in a microseconds, or has ended b microseconds ago, and has longest microseconds. To forgive is to
--        forget all of the key; its tail is + if the key stands for all of the limit. To charge is to take permits that were used
--        already, into debt if need be; its tail is + to report also whether a call would have been admitted instead, or ? to take them only then. To ask is to decide about a call that
--        takes nothing now: its key follows the parameters as if it took or were rejected. To peek changes nothing
-- reply  to charge: of each group with a tail, the outcome that such a call would have had; a single one without a list around it
--        to take, ask and peek: of each limit or each group what its family reports; a single one without a list around it. Calls
--        of a group that are missing in it are refused like the last one. If a limit has blocks, a list with what block.lua
--        reports, behind the others; a refusal by a block alone has the outcome -1
--
-- Times are in microseconds. An outcome is the wait, or minus the retry-after.

-- Whether the clock has stepped back behind the time at which a state was written. A step that is within the difference of
-- two nodes' clocks is none: the call is decided at the time of the state, as if it had come right after; open() below
-- begins anew then.
local latest = now + slack
function behind(written)
  if written > now and written <= latest then now = written end
  return written > now
end

function millis(micros)
  return max(1, ceil(micros / 1000)) + padding
end

function text(number)
  return format('%.0f', number)
end

-- The reply to a command that reads a key; nil if the key holds another type. No script has written that: it is removed
-- unless the call only looks.
function read(command, key, ...)
  local reply = redis.pcall(command, key, ...)
  if type(reply) == 'table' and reply.err then
    if not match(reply.err, 'WRONGTYPE') then error(reply.err, 0) end
    if op ~= 'peek' then
      redis.call('DEL', key)
      if redis.log then redis.log(redis.LOG_WARNING, 'rate limit: ' .. key .. ' held another type and begins anew') end
    end
    return nil
  end
  return reply
end

-- The position of the first number in order that is so large, from first to last; one behind if there is none.
function find(numbers, first, last, least)
  local low, high = first, last
  while low <= high do
    local middle = floor((low + high) / 2)
    if numbers[middle] < least then
      low = middle + 1
    else
      high = middle - 1
    end
  end
  return low
end

-- What families report that count permits: outcome, remaining, reset, and the mark or 0.
function report(reply, outcome, remaining, reset, mark)
  local n = #reply
  reply[n + 1], reply[n + 2], reply[n + 3], reply[n + 4] = outcome, remaining, reset, mark or 0
end

local letters, marks
op, letters, marks = match(ARGV[2], '^(%l+) (%l+) ?([-bc]*)$')
local lockout = marks ~= '' and block()
local blocks = {}
local families, states = {}, {}
for i = 1, #letters do
  -- Making the functions of a family costs more than a call of one of them, and most calls need one family.
  local letter = sub(letters, i, i)
  families[letter] = families[letter] or makers[letter]()
  families[i] = families[letter]
end

-- Opens all limits at one time, the latest that any of them was written at. Returns where the calls begin.
local function open()
  local before, p = now, 3
  for i = 1, #letters do
    states[i], p = families[i].open(KEYS[i], p)
  end
  local key = #letters
  for i = 1, #marks do
    local mark = sub(marks, i, i)
    if mark ~= '-' then
      key = key + 1
      blocks[i], p = lockout.open(KEYS[key], p, mark), p + 1
    end
  end
  return now == before and p or open()
end

-- Whether a call would be rejected however long its policy lets it wait.
local function offends(family, s, call)
  local patience = tonumber((match(call.tail, '^%d+'))) or 0
  local outcome = family.decide(s, call.permits, call.a, call.b, max(call.longest, patience))
  return outcome < 0 and outcome ~= NEVER
end

local function add_charge(charges, instant, permits)
  local at = #charges
  while at > 0 and charges[at][1] > instant do at = at - 1 end
  local known = at > 0 and charges[at][1] == instant and charges[at]
  if known then
    known[2] = max(0, min(MOST, known[2] + permits))
  elseif permits > 0 then
    table.insert(charges, at + 1, { instant, min(MOST, permits) })
  end
end

-- So that there is a bound, the two nearest become one at the instant of the first.
local function merge_charges(charges)
  while #charges > MOST_CHARGES do
    local nearest = 1
    for i = 2, #charges - 1 do
      if charges[i + 1][1] - charges[i][1] < charges[nearest + 1][1] - charges[nearest][1] then nearest = i end
    end
    local second = table.remove(charges, nearest + 1)
    charges[nearest][2] = min(MOST, charges[nearest][2] + second[2])
  end
end

-- Notes what a call was charged: at the instant of its grant, and beyond what it had reserved now. Permits that calls in flight
-- hold are no evidence, and charges that have come back since are none either.
local function settle(family, s, call, held)
  local reserved_at, granted, reserved, excess, tail = match(call.tail, '^(%d+) (%d+) (-?%d+) (%d+)(!?)$')
  reserved_at, granted, reserved, excess = tonumber(reserved_at), tonumber(granted), tonumber(reserved), tonumber(excess)
  local charges = lockout.charges(held)
  if reserved_at == 0 then
    add_charge(charges, now, reserved)
  elseif reserved_at >= held.since then
    add_charge(charges, min(granted, now), reserved)
  end
  if excess > 0 then add_charge(charges, now, excess) end
  local charged, lasts = family.charged(s, charges)
  merge_charges(charges)
  lockout.charge(held, charges, lasts)
  local next = { permits = 1, a = held.a, b = held.b, longest = call.longest, tail = '' }
  if tail == '' and offends(family, s, next) and offends(family, charged, next) then lockout.offend(held) end
end

local replies = {}
for at = open(), #ARGV, #letters do
  local calls, group, before = 1, {}, #replies
  for i = 1, #letters do
    local call = { tail = sub(ARGV[at + i - 1], 36) }
    calls, call.permits, call.a, call.b, call.longest = struct.unpack('>I7I7I7I7I7', ARGV[at + i - 1])
    group[i], replies[before + i] = call, {}
  end
  local family, s, first = families[1], states[1], group[1]
  if op == 'cancel' or calls == 0 then
    if family.cancel(s, first.permits, first.a, first.b, first.tail) then s.changed = true end
    if op == 'cancel' and blocks[1] then lockout.decide(blocks[1], first.longest, true) end
  elseif op == 'keep' then
    lockout.decide(blocks[1], first.longest, false)
  elseif op == 'charge' then
    local outcome = first.tail ~= '' and family.decide(s, first.permits, first.a, first.b, first.longest)
    if outcome then replies[before + 1][1] = outcome end
    if first.tail ~= '?' or outcome >= 0 then
      family.charge(s, first.permits, first.a, first.b)
      s.changed = true
    end
  elseif op == 'renew' then
    family.renew(s, first.permits, first.a, first.tail)
    s.changed = true
  elseif op == 'offend' then
    if offends(family, s, first) then lockout.reject(blocks[1]) end
  elseif op == 'settle' then
    settle(family, s, first, blocks[1])
  elseif op == 'impose' then
    lockout.impose(blocks[1], first.a, first.b, first.longest, first.permits)
  elseif op == 'forgive' then
    redis.call('DEL', KEYS[1])
    s.changed = false
    local lasts = blocks[1].mark == 'c' and select(2, family.charged(s, {})) or nil
    lockout.forgive(blocks[1], lasts, first.tail == '+')
  end
  if op == 'take' or op == 'ask' or op == 'peek' then
    for call = 1, calls do
      local outcomes, refused = {}, false
      for i, asked in ipairs(group) do
        outcomes[i] = families[i].decide(states[i], asked.permits, asked.a, asked.b, asked.longest)
        local held = blocks[i]
        if held and outcomes[i] ~= NEVER and sub(asked.tail, 1, 1) ~= '!' then
          if outcomes[i] < 0 and op == 'take' and held.mark == 'b' and offends(families[i], states[i], asked) then
            lockout.reject(held)
          end
          if outcomes[i] >= 0 and lockout.left(held) > 0 then outcomes[i] = -1 end
        end
        refused = refused or outcomes[i] < 0
      end
      for i, asked in ipairs(group) do
        local mark
        if op == 'take' and not refused then
          mark = families[i].take(states[i], asked.permits, asked.tail)
          states[i].changed = true
          if blocks[i] and blocks[i].mark == 'b' and sub(asked.tail, -1) == '?' then lockout.hold(blocks[i]) end
        end
        families[i].report(states[i], replies[before + i], outcomes[i], mark)
      end
      if refused then break end
    end
  end
end

if op ~= 'peek' then
  for i, s in ipairs(states) do
    if s.changed then families[i].save(s) end
  end
  for _, held in pairs(blocks) do
    if held.changed then lockout.save(held) end
  end
end
if lockout then
  local held = {}
  for i = 1, #letters do
    local own = blocks[i]
    if own then lockout.report(own, held) end
  end
  replies[#replies + 1] = held
  return replies
end
return #replies > 1 and replies or replies[1]
