-- Permits counted in slots. The window is the slot of the call and as many slots before it as the period has: the
-- oldest, partly covered slot counts in full.
--
-- KEYS   HASH number of a slot -> permits taken in it; w: written, as in virtual_time.lua; e: epoch, as in fixed_window.lua
-- ARGV   permits   of one window
--        slot      microseconds of a slot
--        slots     in a window, one more than in the period

local function sliding_window()
  local sliding_window = {}

  function sliding_window.open(key, p)
    local s = { key = key, permits = tonumber(ARGV[p]), slot = tonumber(ARGV[p + 1]), slots = tonumber(ARGV[p + 2]), taken = {},
      order = {}, total = 0, epoch = text(now), dirty = {}, gone = {} }
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
    local kept = {}
    for i = 1, #s.order do
      local slot = s.order[i]
      if slot > s.head - s.slots then
        kept[#kept + 1] = slot
        s.total = s.total + s.taken[slot]
      else
        s.gone[#s.gone + 1] = text(slot)
      end
    end
    s.order = kept
    return s, p + 3
  end

  -- The first slot, not before now or the head, whose window has room.
  function sliding_window.decide(s, permits, a, b, longest)
    if permits > s.permits then return NEVER end
    local slot = max(s.head, floor(now / s.slot))
    local inside = s.total
    for i = 1, #s.order do
      local oldest = s.order[i]
      local counts = oldest + s.slots > slot
      if counts and inside + permits <= s.permits then break end
      inside = inside - s.taken[oldest]
      slot = max(slot, oldest + s.slots)
    end
    s.next = slot
    local wait = max(0, slot * s.slot - now)
    return wait > longest and -(wait - longest) or wait
  end

  local function sw_add(s, slot, permits)
    if slot > s.head then
      s.head = slot
      local kept = {}
      for i = 1, #s.order do
        local oldest = s.order[i]
        if oldest > slot - s.slots then
          kept[#kept + 1] = oldest
        else
          s.total = s.total - s.taken[oldest]
          s.gone[#s.gone + 1] = text(oldest)
          s.dirty[oldest] = nil
        end
      end
      s.order = kept
    end
    if s.order[#s.order] ~= slot then
      s.order[#s.order + 1] = slot
      s.taken[slot] = 0
    end
    s.taken[slot] = s.taken[slot] + permits
    s.total = s.total + permits
    s.dirty[slot] = true
  end

  function sliding_window.take(s, permits)
    sw_add(s, s.next, permits)
    return text(s.next) .. '@' .. s.epoch
  end

  -- All permits are given back while their slot is remembered: whoever goes later was counted beside them.
  function sliding_window.cancel(s, permits, a, b, mark)
    local slot, epoch = match(mark, '^(%d+)@(%d+)$')
    slot = tonumber(slot)
    if not s.found or epoch ~= s.epoch or slot <= s.head - s.slots or not s.taken[slot] then return false end
    s.taken[slot] = s.taken[slot] - permits
    s.total = s.total - permits
    s.dirty[slot] = true
    return true
  end

  -- In the present slot, or in the last one that a waiting call was granted.
  function sliding_window.charge(s, permits)
    sw_add(s, max(s.head, floor(now / s.slot)), min(permits, MOST - s.total))
  end

  local function sw_remaining(s)
    local slot = floor(now / s.slot)
    if slot < s.head then return 0 end
    local inside = s.total
    for i = 1, #s.order do
      if s.order[i] + s.slots > slot then break end
      inside = inside - s.taken[s.order[i]]
    end
    return max(0, s.permits - inside)
  end

  local function sw_reset(s)
    for i = #s.order, 1, -1 do
      if s.taken[s.order[i]] > 0 then return max(0, (s.order[i] + s.slots) * s.slot - now) end
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
      for i = 1, #s.order do s.dirty[s.order[i]] = true end
    elseif #s.gone > 0 then
      for i = 1, #s.gone, 1000 do
        redis.call('HDEL', s.key, unpack(s.gone, i, min(i + 999, #s.gone)))
      end
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
