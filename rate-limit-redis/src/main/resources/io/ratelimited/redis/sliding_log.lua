-- The instants of the last permits, and those granted in advance: one entry for all permits of an instant.
--
-- KEYS   LIST "<shift> <written> <total> <calls>", then "<instant> <permits> <first>[ <call> ...]" for each instant in order, in
--        microseconds since 1970; shift is added to the clock after it has stepped back, so that instants need not be rewritten;
--        written as in virtual_time.lua; total: the sum of all permits below; calls: how many were admitted since the key began;
--        first: the number of the first call that this entry may hold; then the numbers of its calls that gave permits back
-- ARGV   permits   of one period
--        period    microseconds

local function sliding_log()
  local sliding_log = {}

  -- So many entries are looked at in one script at most, so that its time has a bound. What leaves the window beyond is
  -- found by the next one; a call that could go only when more have left is refused until these have.
  local LOOKS = 2000
  -- So many at a time.
  local CHUNK = 128
  -- So many that have left the window are removed by a refused call, too.
  local LITTER = 200

  local function sl_parse(value)
    local instant, permits, first, given = match(value, '^(%d+) (%d+) (%d+)(.*)$')
    return { instant = instant + 0, permits = permits + 0, first = first + 0, given = given }
  end

  -- The entry at a position, counted from 0; more behind it are read along.
  local function sl_entry(s, position, more)
    local entry = s.entries[position]
    if not entry then
      for i, value in ipairs(redis.call('LRANGE', s.key, position + 1, position + 1 + (more or 0))) do
        local at = position + i - 1
        s.entries[at] = s.entries[at] or sl_parse(value)
      end
      entry = s.entries[position]
    end
    return entry
  end

  -- Entries in order, of which most lie behind the first when there is a second.
  local function sl_ahead(s, position)
    return sl_entry(s, position, position > s.gone and CHUNK - 1 or 0)
  end

  local function sl_find_newest(s)
    s.newest = s.size > s.gone and sl_entry(s, s.size - 1).instant or 0
  end

  local function sl_read(s, header)
    local shift, written, total, calls = match(header, '^(%d+) (%d+) (%d+) (%d+)$')
    s.stored = redis.call('LLEN', s.key) - 1
    s.size, s.total, s.calls = s.stored, total + 0, calls + 0
    s.shift, written = shift + 0, written + 0
    s.now = now + s.shift
    sl_find_newest(s)
    local held = written == 0 and s.newest or written
    if held > s.now then
      if held - s.now > slack then
        s.shift = s.shift + held - s.now
        s.changed = true
      end
      s.now = held
    end
    local last = min(s.size, LOOKS)
    while s.gone < last do
      local entry = sl_entry(s, s.gone, s.gone > 0 and CHUNK - 1 or 0)
      if entry.instant + s.period > s.now then break end
      s.total = s.total - entry.permits
      s.gone = s.gone + 1
    end
    if s.gone == s.size then s.total, s.newest = 0, 0 end
    s.changed = s.changed or s.gone > LITTER
    s.found = true
  end

  function sliding_log.open(key, p)
    local s = { key = key, permits = tonumber(ARGV[p]), period = tonumber(ARGV[p + 1]), entries = {}, dirty = {}, gone = 0,
      size = 0, stored = 0, shift = 0, total = 0, calls = 0, now = now, newest = 0, sums = {}, summed = 0 }
    local header = read('LINDEX', key, 0)
    if header then sl_read(s, header) end
    return s, p + 2
  end

  -- How many of the oldest entries have to leave the window until so many permits have; nil if those that may be looked at
  -- are not enough. The sums from the oldest on are kept for the next call.
  local function sl_until(s, permits)
    local sums, most = s.sums, min(LOOKS, s.size - s.gone)
    while s.summed < most and (sums[s.summed] or 0) < permits do
      local sum = (sums[s.summed] or 0) + sl_ahead(s, s.gone + s.summed).permits
      s.summed = s.summed + 1
      sums[s.summed] = sum
    end
    if (sums[s.summed] or 0) < permits then return nil end
    local low, high = 1, s.summed
    while low < high do
      local middle = floor((low + high) / 2)
      if sums[middle] < permits then
        low = middle + 1
      else
        high = middle
      end
    end
    return low
  end

  function sliding_log.decide(s, permits, a, b, longest)
    local wait, over = max(0, s.newest - s.now), s.total + permits - s.permits
    if permits > s.permits then return NEVER end
    if over > 0 then
      local entries = sl_until(s, over)
      local leaves = sl_entry(s, s.gone + (entries or s.summed) - 1).instant + s.period - s.now
      if not entries then return -max(1, leaves - longest) end
      wait = max(wait, leaves)
    end
    s.wait = wait
    return wait > longest and -(wait - longest) or wait
  end

  local function sl_touch(s, position)
    s.dirty[position] = true
    s.summed = min(s.summed, max(0, position - s.gone))
  end

  local function sl_add(s, instant, permits)
    permits = min(permits, MOST - s.total)
    local last = s.size > s.gone and sl_entry(s, s.size - 1)
    if last and last.instant == instant then
      last.permits = last.permits + permits
    else
      s.entries[s.size] = { instant = instant, permits = permits, first = s.calls, given = '' }
      s.size = s.size + 1
    end
    sl_touch(s, s.size - 1)
    s.total = s.total + permits
    s.newest = instant
  end

  function sliding_log.take(s, permits)
    sl_add(s, s.now + s.wait, permits)
    local call = s.calls
    s.calls = call + 1
    return text(s.newest) .. ' ' .. text(call)
  end

  local function sl_position(s, instant)
    local low, high = s.gone, s.size
    while low < high do
      local middle = floor((low + high) / 2)
      if sl_entry(s, middle).instant < instant then
        low = middle + 1
      else
        high = middle
      end
    end
    return low < s.size and sl_entry(s, low).instant == instant and low
  end

  -- All permits that are still remembered are given back, once: whoever goes later was counted beside them. A sum at its
  -- largest, after an enormous charge, may be too small already.
  function sliding_log.cancel(s, permits, a, b, mark)
    local instant, call = match(mark, '^(%d+) (%d+)$')
    local position = s.found and instant and s.total < MOST and sl_position(s, instant + 0)
    if not position then return false end
    local entry = sl_entry(s, position)
    if call + 0 < entry.first or call + 0 >= s.calls or match(entry.given .. ' ', ' ' .. call .. ' ') then return false end
    local back = min(permits, entry.permits)
    entry.permits, entry.given = entry.permits - back, entry.given .. ' ' .. call
    s.total = s.total - back
    sl_touch(s, position)
    while s.size > s.gone and sl_entry(s, s.size - 1).permits == 0 do
      s.size = s.size - 1
      s.entries[s.size] = nil
      s.summed = min(s.summed, s.size - s.gone)
    end
    sl_find_newest(s)
    return true
  end

  -- At the present instant, or at that of the last waiting call.
  function sliding_log.charge(s, permits)
    sl_add(s, max(s.newest, s.now), permits)
  end

  function sliding_log.report(s, reply, outcome, mark)
    local remaining = s.newest > s.now and 0 or max(0, s.permits - s.total)
    report(reply, outcome, remaining, max(0, s.newest + s.period - s.now), mark)
  end

  local function sl_text(entry)
    return text(entry.instant) .. ' ' .. text(entry.permits) .. ' ' .. text(entry.first) .. entry.given
  end

  function sliding_log.save(s)
    local written = (slack > 0 or s.newest > s.now) and text(s.now) or '0'
    local header = text(s.shift) .. ' ' .. written .. ' ' .. text(s.total) .. ' ' .. text(s.calls)
    if not s.found then redis.call('RPUSH', s.key, header) end
    if s.size < s.stored then redis.call('LTRIM', s.key, 0, s.size) end
    local added = {}
    for position in pairs(s.dirty) do
      if position >= s.gone and position < s.size then
        local value = sl_text(s.entries[position])
        if position < s.stored then
          redis.call('LSET', s.key, position + 1, value)
        else
          added[position - s.stored + 1] = value
        end
      end
    end
    if #added > 0 then redis.call('RPUSH', s.key, unpack(added)) end
    if s.found then
      if s.gone > 0 then redis.call('LTRIM', s.key, s.gone, -1) end
      redis.call('LSET', s.key, 0, header)
    end
    redis.call('PEXPIRE', s.key, millis(s.newest + s.period - s.now))
  end

  return sliding_log
end
