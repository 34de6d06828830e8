-- Token bucket, GCRA, smooth bursty and leaky bucket: one time V at which the bucket holds zero permits.
--
-- KEYS   STRING "<meta> " and big-endian integers: V, 7 bytes, in microseconds since 1970; epoch, 7 bytes; then, unless
--        needless: returned, 8 and 5 bytes, microseconds and parts that were given back from the middle; due and latest, 8
--        and 5 bytes each; the length of gave, 2 bytes; gave, for each time 8 and 8 bytes, or 8, 5, 8 and 5 if there are
--        parts; part, 5 bytes, V's parts of a microsecond; written, 7 bytes, the time of the last call, if V was ahead of it,
--        calls overlap, or nodes say the time
-- epoch  of the marks that still mean something: begins when the key does, and anew when the clock steps back or the
--        parameters change; the time of that, or the next number. Cancelling a reservation of an earlier epoch gives
--        nothing back. From 2^52 on: the parameters have changed
-- W      V + returned: what V would be if nothing had been given back from the middle. Marks are of W, so that they tell
--        what is reserved behind them
-- due    no waiting caller goes later: a charge moves V, but nobody waits for it. V itself unless it is stored
-- latest no permits were or will be used later. Unless it is stored: the later of V and written, or the present time
-- gave   the marks of what was given back from the middle, in order, and how much that was
-- ARGV   packed, and then meta, which ends with a space:
--        kind      0: a call waits for its own permits; 1: for those of its predecessors; 2: the same, in a queue
--        one       parts of a microsecond in which V is counted, so that no rate drifts
--        depth, depth part         what the bucket holds, as a time
--        step      parts that one permit takes
--        queue, queue part         of kind 2: a wait of so much is refused
--        origin    of kind 1: when the cluster began; the bucket was empty then
-- call   a, b      cost in microseconds and parts
-- reply  for a group of equal calls: now; V and its part before the first of them; epoch; how many were admitted; the outcome of
--        the others; returned and its part. Zeros may be missing at the end. ScriptFamily.java reads each decision off it

-- Epochs from here on: the parameters have changed.
local CHANGED = 4503599627370496

-- The fast path of nearly all calls: one group of equal calls that take permits of a bucket that pays for itself, as it was
-- stored under these parameters, with nothing returned. The family below decides everything else, by the same rules. Several
-- keys may be given under one limit: each is decided by itself, and the reply is -1 for one that is left as it was, which needs
-- a command of its own. Under several limits all are taken or none.
--
-- Every microsecond counts here: only local variables, no functions, no table that is not needed, each made for two keys
-- because growing costs more, and the expiry as text, which SET would write slower.
local limits = #ARGV[2] - #'take '
if #ARGV == 2 + 2 * limits and (ARGV[2] == 'take v' or match(ARGV[2], '^take v+$')) then
  local pack, unpack, pcall = struct.pack, struct.unpack, redis.pcall
  local kind, one, depth, depth_part, meta, size, calls, permits, a, b, longest, low, low_part
  local replies, refused, left = { -1, -1 }, false, false
  local values, expiries = limits > 1 and { '', '' }, limits > 1 and { '', '' }
  for i = 1, #KEYS do
    local key = KEYS[i]
    if i == 1 or limits > 1 then
      kind, one, depth, depth_part = unpack('>I7I7I7I7', ARGV[2 + i])
      meta = sub(ARGV[2 + i], 57)
      calls, permits, a, b, longest = unpack('>I7I7I7I7I7', ARGV[2 + limits + i])
      size, low, low_part = #meta, now - depth, 0
      if depth_part > 0 then
        low, low_part = low - 1, one - depth_part
      end
    end
    local v, part, epoch, written = nil, 0, now, nil
    local value = pcall('GET', key)
    if kind > 0 or calls == 0 then
      v = nil
    elseif not value then
      v, part = low, low_part
    elseif type(value) == 'string' and sub(value, 1, size) == meta then
      local length = #value - size
      if length == 14 then
        v, epoch = unpack('>I7I7', value, size + 1)
      elseif length == 19 then
        v, epoch, part = unpack('>I7I7I5', value, size + 1)
      elseif length == 21 then
        v, epoch, written = unpack('>I7I7I7', value, size + 1)
      elseif length == 26 then
        v, epoch, part, written = unpack('>I7I7I5I7', value, size + 1)
      end
      if v and (epoch >= CHANGED or (written or v) > now) then
        -- The parameters have changed, or the clock has stepped back.
        v = nil
      elseif v and (v < low or (v == low and part < low_part)) then
        v, part = low, low_part
      end
    end
    local reply
    if v then
      -- All calls at once, or as many of them as fit.
      local after, after_part, taken, outcome = v + calls * a, part + calls * b, calls, nil
      if after_part >= one then
        local carry = floor(after_part / one)
        after, after_part = after + carry, after_part - carry * one
      end
      local wait = after - now + (after_part > 0 and 1 or 0)
      if wait > longest then
        after, after_part, taken = v, part, 0
        while true do
          local next_v, next_part = after + a, after_part + b
          if next_part >= one then
            next_v, next_part = next_v + 1, next_part - one
          end
          wait = next_v - now + (next_part > 0 and 1 or 0)
          if wait > longest then break end
          after, after_part, taken = next_v, next_part, taken + 1
        end
        outcome, refused = wait > FAR and UNKNOWN or longest - wait, true
      end
      reply = { now, v, part, epoch, taken, outcome }
      if taken > 0 then
        local ahead = after > now or (after == now and after_part > 0)
        local overlaps = taken > 1 or v > low or (v == low and part > low_part)
        value = meta .. pack('>I7I7', after, epoch)
        if after_part > 0 then value = value .. pack('>I5', after_part) end
        if ahead or overlaps or slack > 0 then value = value .. pack('>I7', now) end
        local over = after_part + depth_part
        local full = after + depth - now + (over > one and 2 or over > 0 and 1 or 0)
        local expiry = format('%d', ceil(full / 1000) + padding)
        if limits > 1 then
          values[i], expiries[i], reply[6] = value, expiry, wait > 0 and wait or 0
        elseif pcall('SET', key, value, 'PX', expiry).err then
          -- The family reports why.
          reply = nil
        end
      end
    end
    left = left or not reply
    replies[i] = reply or -1
  end
  if limits == 1 and #KEYS > 1 then return replies end
  if not left then
    if limits == 1 then return replies[1] end
    for i, key in ipairs(KEYS) do
      if refused then
        replies[i][5] = 0
      else
        replies[i][6] = nil
        redis.call('SET', key, values[i], 'PX', expiries[i])
      end
    end
    return replies
  end
end

local function virtual_time()
  local virtual_time = {}

  -- The share that the doubles of a conversion may be wrong by. Without it a permit or a full bucket would be a part short each
  -- time, and nodes with different limits that take turns would reject every call for it.
  local ROUNDING = 1e-14

  -- What was given back beyond so many times is counted as if it had been granted earlier, which gives nobody more.
  local MOST_MARKS = 256

  local function vt_begin(s)
    s.epoch = max(now, (s.epoch or 0) + 1)
    s.returned, s.returned_part, s.due, s.used, s.gave = 0, 0, nil, nil, ''
  end

  -- The sum and the difference of two times as microseconds and parts.
  local function vt_more(s, v, part, other, other_part)
    v, part = v + other, part + other_part
    if part >= s.one then return v + 1, part - s.one end
    return v, part
  end

  local function vt_less(s, v, part, other, other_part)
    v, part = v - other, part - other_part
    if part < 0 then return v - 1, part + s.one end
    return v, part
  end

  local function vt_later(v, part, than, than_part)
    return v > than or (v == than and part > than_part)
  end

  -- From now on V may be later than every waiting caller, and than every use of permits.
  local function vt_divide(s)
    if s.due then return end
    s.due, s.due_part = s.v, s.part
    s.latest, s.latest_part = s.used or now, 0
    if vt_later(s.v, s.part, s.latest, 0) then s.latest, s.latest_part = s.v, s.part end
  end

  -- Permits are used at a time.
  local function vt_use(s, v, part)
    s.overlaps = s.overlaps or vt_later(s.v, s.part, s.low, s.low_part)
    s.used = now
    if s.due and vt_later(v, part, s.latest, s.latest_part) then s.latest, s.latest_part = v, part end
  end

  local function vt_params(key, p)
    local s = { key = key, meta = sub(ARGV[p], 57), returned = 0, returned_part = 0, gave = '' }
    s.kind, s.one, s.depth, s.depth_part, s.step, s.queue, s.queue_part, s.origin =
      struct.unpack('>I7I7I7I7I7I7I7I7', ARGV[p])
    s.pays = s.kind == 0
    s.low, s.low_part = now - s.depth, 0
    if s.depth_part > 0 then
      s.low, s.low_part = s.low - 1, s.one - s.depth_part
    end
    return s
  end

  local function vt_read(s, value)
    local at, part, written = #s.meta + 1, 0, 0
    local extra = #value - at - 13
    s.v, s.epoch = struct.unpack('>I7I7', value, at)
    if extra >= 41 then
      local length
      s.returned, s.returned_part, s.due, s.due_part, s.latest, s.latest_part, length =
        struct.unpack('>I8I5I8I5I8I5I2', value, at + 14)
      s.gave = sub(value, at + 55, at + 54 + length)
      at, extra = at + 41 + length, extra - 41 - length
    end
    if extra == 5 or extra == 12 then part = struct.unpack('>I5', value, at + 14) end
    if extra >= 7 then written = struct.unpack('>I7', value, #value - 6) end
    s.part = part
    if written > 0 then s.used = written end
    if behind(written > 0 and written or s.v) then
      -- The clock has stepped back; so does V.
      if written > now then
        s.v = s.v - (written - now)
      else
        s.v, s.part = now, 0
      end
      vt_begin(s)
      s.changed = true
    end
  end

  -- Goes on with what is left of a state under other parameters: as many permits, or the same share of what can be stored if
  -- that is less; debt in permits. Rounded down to a part. From the second time on as many permits as fit: nodes with different
  -- limits that take turns would else keep the share of the share, and soon nothing.
  local function vt_convert(s, value)
    local meta, permits, period, burst = match(value, '^((%d+)/([^/ ]+)/?([%ds]*) )')
    if not meta or #value < #meta + 14 then return false end
    local old = { meta = meta }
    vt_read(old, value)
    local again = old.epoch >= CHANGED
    local unit, old_unit = s.step / s.one, period / 1000 / permits
    local debt = old.v - now + (old.part > 0 and 1 or 0)
    s.part, s.epoch = 0, again and old.epoch + 1 or CHANGED + max(now, old.epoch + 1)
    if debt > 0 then
      s.v = now + min(FAR, ceil(debt / old_unit * unit))
    else
      local depth = s.kind == 2 and 0 or burst == 's' and 1000000 or (burst == '' and permits or burst) * old_unit
      local room, left = s.depth + s.depth_part / s.one, min(depth, -debt)
      if room * old_unit >= depth * unit or again then
        left = min(room, left * unit / old_unit)
      elseif left < depth then
        left = left * room / depth
      else
        left = room
      end
      local parts = floor(left * s.one * (1 + ROUNDING))
      if left >= room * (1 - ROUNDING) then
        s.v, s.part = s.low, s.low_part
      elseif parts < 2 ^ 53 then
        left = floor(parts / s.one)
        s.v, s.part = vt_less(s, now, 0, left, parts - left * s.one)
      else
        s.v = now - floor(left)
      end
    end
    s.changed = op == 'take' or op == 'ask'
    return true
  end

  function virtual_time.open(key, p)
    local value = read('GET', key)
    local s = vt_params(key, p)
    if value and sub(value, 1, #s.meta) == s.meta then
      vt_read(s, value)
      s.found = true
    elseif value and vt_convert(s, value) then
      s.begin = s.v
      return s, p + 1
    else
      s.epoch = now
      local origin = min(s.origin, now)
      if s.kind == 1 and origin > s.low then
        s.v, s.part = origin, 0
        return s, p + 1
      end
      s.v, s.part = s.low, s.low_part
    end
    if s.v < s.low or (s.v == s.low and s.part < s.low_part) then
      if s.returned > 0 or s.returned_part > 0 then
        local w, w_part = vt_more(s, s.v, s.part, s.returned, s.returned_part)
        s.returned, s.returned_part = vt_less(s, w, w_part, s.low, s.low_part)
        if s.returned < 0 then
          s.returned, s.returned_part = 0, 0
        end
        s.gave = ''
      end
      s.v, s.part = s.low, s.low_part
    end
    s.overlaps = s.used and vt_later(s.v, s.part, s.low, s.low_part)
    s.begin = s.v
    return s, p + 1
  end

  function virtual_time.decide(s, permits, a, b, longest)
    local v, part = s.v + a, s.part + b
    if part >= s.one then
      v, part = v + 1, part - s.one
    end
    s.next, s.next_part = v, part
    if not s.pays then
      v, part = s.v, s.part
    end
    local wait = v - now
    if part > 0 then wait = wait + 1 end
    if wait <= 0 then return 0 end
    if wait > FAR then return UNKNOWN end
    local late = wait - longest
    if s.kind == 2 then
      local room = v - s.queue - now + 1
      if part < s.queue_part then room = room - 1 end
      late = max(late, room)
    end
    return late > 0 and -late or wait
  end

  function virtual_time.take(s)
    s.seen, s.seen_part = s.v, s.part
    if vt_later(s.next, s.next_part, now, 0) then
      vt_use(s, s.next, s.next_part)
    else
      vt_use(s, now, 0)
    end
    s.v, s.part = s.next, s.next_part
    if s.due and vt_later(s.v, s.part, now, 0) and vt_later(s.v, s.part, s.due, s.due_part) then
      s.due, s.due_part = s.v, s.part
    end
    return true
  end

  function virtual_time.report(s, reply, outcome, taken)
    if #reply == 0 then
      local v, part = s.v, s.part
      if taken then v, part = s.seen, s.seen_part end
      for i, number in ipairs({ now, v, part, s.epoch, 0, outcome, s.returned, s.returned_part }) do reply[i] = number end
    end
    if taken then reply[5] = reply[5] + 1 end
    reply[6] = outcome
  end

  -- A mark of s.gave, and how much was given back of its grant.
  local function vt_back(s, at)
    if s.one > 1 then return struct.unpack('>I8I5I8I5', s.gave, at) end
    local mark, back = struct.unpack('>I8I8', s.gave, at)
    return mark, 0, back, 0
  end

  local function vt_pack(s, mark, mark_part, back, back_part)
    if s.one > 1 then return struct.pack('>I8I5I8I5', mark, mark_part, back, back_part) end
    return struct.pack('>I8I8', mark, back)
  end

  -- What was given back of grants later than the one with a mark.
  local function vt_gave_after(s, mark, mark_part)
    local size, sum, sum_part = s.one > 1 and 26 or 16, 0, 0
    for at = #s.gave - size + 1, 1, -size do
      local m, m_part, back, back_part = vt_back(s, at)
      if not vt_later(m, m_part, mark, mark_part) then break end
      sum, sum_part = vt_more(s, sum, sum_part, back, back_part)
    end
    return sum, sum_part
  end

  local function vt_gave(s, mark, mark_part, back, back_part)
    local size, at = s.one > 1 and 26 or 16, #s.gave + 1
    while at > 1 do
      local m, m_part = vt_back(s, at - size)
      if not vt_later(m, m_part, mark, mark_part) then break end
      at = at - size
    end
    s.gave = sub(s.gave, 1, at - 1) .. vt_pack(s, mark, mark_part, back, back_part) .. sub(s.gave, at)
    if #s.gave > size * MOST_MARKS then
      local m, m_part, first, first_part = vt_back(s, 1)
      local _, _, second, second_part = vt_back(s, size + 1)
      first, first_part = vt_more(s, first, first_part, second, second_part)
      s.gave = vt_pack(s, m, m_part, first, first_part) .. sub(s.gave, 2 * size + 1)
    end
  end

  -- The last reservation is undone exactly, unless a part of it stays at a time to come: earlier grants see all of it behind
  -- them. Behind a call that paid for itself others may have reserved: if some wait, only what they have not reserved is given
  -- back. When all have gone, it is the least room that the bucket has had since: that of now, or that just before the latest
  -- use, of which two bounds are known. VirtualTime.Parameters.back says why.
  function virtual_time.cancel(s, permits, a, b, mark)
    local v, part, epoch, cost, cost_part, instant = match(mark, '^(%d+)%+(%d+)@(%d+)/(%d+)%+(%d+)@(%d+)$')
    if not s.found or s.epoch ~= tonumber(epoch) then return false end
    v, part, cost, cost_part, b = tonumber(v), tonumber(part), tonumber(cost), tonumber(cost_part), tonumber(b)
    local w, w_part = vt_more(s, s.v, s.part, s.returned, s.returned_part)
    local later, later_part = vt_less(s, w, w_part, v, part)
    local undone = later == 0 and later_part == 0
    if undone then
      undone = not (s.pays and vt_later(s.v, s.part, now, 0) and vt_later(cost, cost_part, a, b))
    else
      if not s.pays then return false end
      local due, due_part = s.due or s.v, s.due and s.due_part or s.part
      local room, room_part = vt_less(s, s.v, s.part, s.low, s.low_part)
      if vt_later(a, b, room, room_part) then a, b = room, room_part end
      if vt_later(due, due_part, now, 0) and vt_later(w, w_part, now, 0) then
        a, b = vt_less(s, a, b, later, later_part)
      else
        vt_divide(s)
        local late, late_part = s.latest, s.latest_part
        if late >= now then late, late_part = now, 0 end
        local since, since_part = vt_less(s, late, late_part, tonumber(instant), 0)
        local own, own_part = vt_less(s, cost, cost_part, since, since_part)
        later, later_part = vt_less(s, later, later_part, vt_gave_after(s, v, part))
        local all, all_part = vt_more(s, s.v, s.part, s.depth, s.depth_part)
        all, all_part = vt_less(s, all, all_part, late, late_part)
        all, all_part = vt_less(s, all, all_part, later, later_part)
        if vt_later(own, own_part, all, all_part) then all, all_part = own, own_part end
        if vt_later(a, b, all, all_part) then a, b = all, all_part end
      end
    end
    if a < 0 or (a == 0 and b == 0) then return false end
    if undone then
      -- What stays of a call that has waited was used at the time that was V.
      local at = s.v + (s.part > 0 and 1 or 0)
      if s.used and at <= now then s.used = max(s.used, at) end
    else
      vt_divide(s)
      if s.returned + a >= MOST then
        -- The rest stays spent: times stay exact.
        a, b = MOST - 1 - s.returned, 0
        if a <= 0 then return false end
      end
      s.returned, s.returned_part = vt_more(s, s.returned, s.returned_part, a, b)
      vt_gave(s, v, part, a, b)
    end
    s.v, s.part = vt_less(s, s.v, s.part, a, b)
    return true
  end

  -- Virtual time moves on by the cost, no further ahead than anyone waits.
  function virtual_time.charge(s, permits, a, b)
    local v, part = vt_more(s, s.v, s.part, a, b)
    if v >= now + FAR then v, part = now + FAR, 0 end
    if v < s.v or (v == s.v and part < s.part) then v, part = s.v, s.part end
    if s.pays and vt_later(v, part, now, 0) then vt_divide(s) end
    vt_use(s, now, 0)
    s.v, s.part = v, part
  end

  -- The bucket is full before the first of them. Beyond the number that is known, the oldest of them counts nothing any more if
  -- the bucket is full before the next one; else both are one at its instant, which makes no difference to V.
  function virtual_time.charged(s, charges)
    local function full(instant)
      return s.low - (now - instant), s.low_part
    end
    local function after(v, part, charge)
      local low, low_part = full(charge[1])
      if vt_later(low, low_part, v, part) then v, part = low, low_part end
      local parts = charge[2] * s.step
      local cost = floor(parts / s.one)
      v, part = vt_more(s, v, part, cost, parts < 2 ^ 53 and parts - cost * s.one or 0)
      if v >= now + FAR then v, part = now + FAR, 0 end
      return v, part
    end
    while #charges > MOST_CHARGES do
      local first, second = charges[1], charges[2]
      local v, part = after(-math.huge, 0, first)
      local low, low_part = full(second[1])
      if vt_later(v, part, low, low_part) then second = { first[1], min(MOST, first[2] + second[2]) } end
      table.remove(charges, 1)
      charges[1] = second
    end
    local v, part = s.low, s.low_part
    if charges[1] then
      v, part = -math.huge, 0
      for _, charge in ipairs(charges) do v, part = after(v, part, charge) end
      if vt_later(s.low, s.low_part, v, part) then v, part = s.low, s.low_part end
    end
    return setmetatable({ v = v, part = part }, { __index = s }), v - s.low + s.depth + 1
  end

  -- Microseconds until the bucket holds its depth, rounded up.
  local function vt_until_full(s)
    local part = s.part + s.depth_part
    return max(0, s.v + s.depth - now + (part > s.one and 2 or part > 0 and 1 or 0))
  end

  function virtual_time.save(s)
    local full = vt_until_full(s)
    if s.epoch >= CHANGED then
      -- Nodes with the parameters of before may need longer until the key is as one never seen to them.
      full = max(full, (redis.call('PTTL', s.key) - padding) * 1000 + max(0, s.v - s.begin + 1))
    end
    if full == 0 and slack == 0 and s.returned == 0 and s.returned_part == 0 then
      redis.call('DEL', s.key)
      return
    end
    local returned, written = '', nil
    if s.due and (s.returned > 0 or s.returned_part > 0 or vt_later(s.v, s.part, now, 0)) then
      returned = struct.pack('>I8I5I8I5I8I5I2', s.returned, s.returned_part, s.due, s.due_part, s.latest, s.latest_part,
        #s.gave) .. s.gave
    end
    if vt_later(s.v, s.part, now, 0) then
      written = now
    elseif slack > 0 or (s.pays and s.overlaps) then
      written = s.used or now
    end
    local value = s.meta .. struct.pack('>I7I7', s.v, s.epoch) .. returned
    if s.part > 0 then value = value .. struct.pack('>I5', s.part) end
    if written then value = value .. struct.pack('>I7', written) end
    redis.call('SET', s.key, value, 'PX', millis(full))
  end

  return virtual_time
end
