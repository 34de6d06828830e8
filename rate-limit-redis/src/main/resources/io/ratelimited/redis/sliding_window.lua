-- Permits counted in slots. The window is the slot of the call and as many slots before it as the period has: the
-- oldest, partly covered slot counts in full.
--
-- KEYS   HASH number of a slot -> permits taken in it; w: written, as in virtual_time.lua; e: epoch, as in fixed_window.lua
-- ARGV   permits   of one window
--        slot      microseconds of a slot
--        slots     in a window, one more than in the period

local function sliding_window()
  local sliding_window = {}

  -- s.order     slots in order, those from s.first on in the window, or in that of the present slot if it is before the last
  -- s.sums      of the permits of s.order[s.first] to s.order[i]: what a call looks for is found by halves, so that many
  --             callers in one command do not look at each slot each

  local function sw_sum(s)
    local sum = 0
    s.sums[s.first - 1] = 0
    for i = s.first, #s.order do
      sum = sum + s.taken[s.order[i]]
      s.sums[i] = sum
    end
  end

  -- Permits in the window, without those of the slots before a position.
  local function sw_inside(s, position)
    return s.sums[#s.order] - s.sums[position - 1]
  end

  -- The position of the oldest slot that counts in the window of a slot.
  local function sw_oldest(s, slot)
    return find(s.order, s.first, #s.order, slot - s.slots + 1)
  end

  local function sw_leave(s)
    local first = sw_oldest(s, min(s.head, floor(now / s.slot)))
    for i = s.first, first - 1 do
      s.gone[#s.gone + 1] = text(s.order[i])
      s.dirty[s.order[i]] = nil
    end
    s.first = first
  end

  function sliding_window.open(key, p)
    local s = { key = key, permits = tonumber(ARGV[p]), slot = tonumber(ARGV[p + 1]), slots = tonumber(ARGV[p + 2]), taken = {},
      order = {}, sums = { [0] = 0 }, first = 1, epoch = text(now), dirty = {}, gone = {} }
    local fields = read('HGETALL', key) or {}
    local here = floor(now / s.slot)
    local written
    for i = 1, #fields, 2 do
      local field = fields[i]
      if field == 'w' then
        written = tonumber(fields[i + 1])
      elseif field == 'e' then
        s.epoch = fields[i + 1]
      else
        local slot = tonumber(field)
        s.taken[slot] = tonumber(fields[i + 1])
        s.order[#s.order + 1] = slot
      end
    end
    s.head = here
    if not written then return s, p + 3 end
    s.found = true
    table.sort(s.order)
    s.head = s.order[#s.order] or here
    local back = 0
    if behind(written > 0 and written or s.head * s.slot) then
      back = (written > 0 and floor(written / s.slot) or s.head) - here
    end
    if back > 0 then
      -- The clock has stepped back; so do the slots.
      local taken, order = s.taken, s.order
      s.taken, s.order, s.head, s.replace = {}, {}, s.head - back, true
      s.changed = true
      for i = 1, #order do
        s.order[i] = order[i] - back
        s.taken[order[i] - back] = taken[order[i]]
      end
    end
    sw_leave(s)
    sw_sum(s)
    return s, p + 3
  end

  -- The first slot, not before now or the head, whose window has room.
  function sliding_window.decide(s, permits, a, b, longest)
    if permits > s.permits then return NEVER end
    local slot = max(s.head, floor(now / s.slot))
    local oldest = sw_oldest(s, slot)
    local over = sw_inside(s, oldest) + permits - s.permits
    if over > 0 then
      slot = s.order[find(s.sums, oldest, #s.order, s.sums[oldest - 1] + over)] + s.slots
    end
    s.next = slot
    local wait = max(0, slot * s.slot - now)
    return wait > longest and -(wait - longest) or wait
  end

  local function sw_add(s, slot, permits)
    if slot > s.head then
      s.head = slot
      sw_leave(s)
      -- Sums stay exact.
      if s.sums[#s.order] > MOST then sw_sum(s) end
    end
    local last = #s.order
    if last < s.first or s.order[last] ~= slot then
      last = last + 1
      s.order[last], s.taken[slot], s.sums[last] = slot, 0, s.sums[last - 1]
    end
    s.taken[slot] = s.taken[slot] + permits
    s.sums[last] = s.sums[last] + permits
    s.dirty[slot] = true
  end

  function sliding_window.take(s, permits)
    local before = s.next > s.head and s.next * s.slot > now and '@' .. text(s.head) or ''
    sw_add(s, s.next, permits)
    return text(s.next) .. '@' .. s.epoch .. before
  end

  -- All permits are given back while their slot is remembered: whoever goes later was counted beside them. When the waiting call
  -- that has opened the last slot is the last to leave it, the slots before it are open again.
  function sliding_window.cancel(s, permits, a, b, mark)
    local slot, epoch = match(mark, '^(%d+)@(%d+)')
    local before = match(mark, '@%d+@(%d+)$')
    slot = tonumber(slot)
    if not s.found or epoch ~= s.epoch or slot <= s.head - s.slots or not s.taken[slot] then return false end
    s.taken[slot] = max(0, s.taken[slot] - permits)
    s.dirty[slot] = true
    if before and slot == s.head and s.taken[slot] == 0 then
      s.order[#s.order], s.taken[slot], s.dirty[slot] = nil, nil, nil
      s.gone[#s.gone + 1] = text(slot)
      s.head = max(tonumber(before), s.order[#s.order] or 0)
    end
    sw_sum(s)
    return true
  end

  -- In the present slot, or in the last one that a waiting call was granted.
  function sliding_window.charge(s, permits)
    -- Counts in full: where the sum would be too large, what was taken earlier counts less, and leaves first.
    local over = sw_inside(s, s.first) + permits - MOST
    for i = s.first, #s.order do
      if over <= 0 then break end
      local slot = s.order[i]
      local less = min(over, s.taken[slot])
      s.taken[slot], s.dirty[slot], over = s.taken[slot] - less, true, over - less
    end
    sw_sum(s)
    sw_add(s, max(s.head, floor(now / s.slot)), permits)
  end

  function sliding_window.charged(s, charges)
    local head = floor(now / s.slot)
    local own = setmetatable({ taken = {}, order = {}, sums = { [0] = 0 }, first = 1, head = head, dirty = {}, gone = {} },
      { __index = s })
    local oldest = charges[1]
    while oldest and floor(oldest[1] / s.slot) <= head - s.slots do
      table.remove(charges, 1)
      oldest = charges[1]
    end
    for _, charge in ipairs(charges) do sw_add(own, floor(charge[1] / s.slot), charge[2]) end
    return own, s.slots * s.slot
  end

  local function sw_remaining(s)
    local slot = floor(now / s.slot)
    if slot < s.head then return 0 end
    return max(0, s.permits - sw_inside(s, sw_oldest(s, slot)))
  end

  local function sw_reset(s)
    local last = #s.order
    if last >= s.first and sw_inside(s, sw_oldest(s, s.head)) > 0 then
      local slot = s.order[find(s.sums, s.first, last, s.sums[last])]
      return max(0, (slot + s.slots) * s.slot - now)
    end
    -- A later slot that was given back whole still closes those before it.
    return max(0, s.head * s.slot - now)
  end

  function sliding_window.report(s, reply, outcome, mark)
    report(reply, outcome, sw_remaining(s), sw_reset(s), mark)
  end

  function sliding_window.save(s)
    if s.replace then
      redis.call('DEL', s.key)
      for i = s.first, #s.order do s.dirty[s.order[i]] = true end
    elseif #s.gone > 0 then
      redis.call('HDEL', s.key, unpack(s.gone))
    end
    local ahead = s.head * s.slot > now
    redis.call('HSET', s.key, 'w', (slack > 0 or ahead) and text(now) or '0', 'e', s.epoch)
    for slot in pairs(s.dirty) do
      redis.call('HSET', s.key, text(slot), text(s.taken[slot]))
    end
    redis.call('PEXPIRE', s.key, millis((s.head + s.slots) * s.slot - now))
  end

  return sliding_window
end
