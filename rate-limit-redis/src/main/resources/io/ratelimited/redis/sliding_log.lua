-- The instants of the last permits: at most as many as the limit has, and those granted in advance.
--
-- KEYS   LIST "<shift> <written> <largest> <older>", then one instant a permit in order, in microseconds since 1970; shift is
--        added to the clock after it has stepped back, so that instants need not be rewritten; written as in
--        virtual_time.lua; largest: the largest number of permits that any node has counted by; older: permits before the
--        first instant, which is the latest of theirs; they count as long as it does
-- ARGV   permits   of one period
--        period    microseconds

local function sliding_log()
  local sliding_log = {}

  local function sl_instant(s, position)
    if position >= s.stored then return tonumber(s.added[position - s.stored + 1]) end
    return tonumber(redis.call('LINDEX', s.key, position + 1))
  end

  local function sl_read(s, shift, written)
    s.stored = redis.call('LLEN', s.key) - 1
    s.size = s.stored
    s.shift, written = tonumber(shift), tonumber(written)
    s.now = now + s.shift
    local newest = s.size > 0 and sl_instant(s, s.size - 1) or 0
    local held = written == 0 and newest or written
    if held > s.now then
      if held - s.now > slack then
        s.shift = s.shift + held - s.now
        s.changed = true
      end
      s.now = held
    end
    s.newest = newest
    -- The first instant that is still in the window.
    local low, high = 0, s.size
    if high > 0 and sl_instant(s, 0) + s.period > s.now then high = 0 end
    while low < high do
      local middle = floor((low + high) / 2)
      if sl_instant(s, middle) + s.period <= s.now then
        low = middle + 1
      else
        high = middle
      end
    end
    s.gone = low
    if low > 0 or s.size == 0 then s.older = 0 end
    s.inside = s.size - low + s.older
    s.found = true
  end

  function sliding_log.open(key, p)
    local s = { key = key, permits = tonumber(ARGV[p]), period = tonumber(ARGV[p + 1]), added = {}, size = 0, stored = 0,
      shift = 0, inside = 0, now = now, newest = 0, older = 0 }
    s.largest = s.permits
    local header = read('LINDEX', key, 0)
    if header then
      local shift, written, largest, older = match(header, '^(%d+) (%d+) (%d+) (%d+)$')
      s.largest, s.older = max(s.permits, tonumber(largest)), tonumber(older)
      sl_read(s, shift, written)
    end
    return s, p + 2
  end

  function sliding_log.decide(s, permits, a, b, longest)
    local wait = s.size == 0 and 0 or max(0, s.newest - s.now)
    local last = s.size - 1 - (s.permits - permits)
    if last + s.older >= 0 then
      wait = max(wait, sl_instant(s, max(0, last)) + s.period - s.now)
    end
    s.wait = wait
    return wait > longest and -(wait - longest) or wait
  end

  local function sl_add(s, instant, permits)
    local value = text(instant)
    for i = 1, permits do s.added[#s.added + 1] = value end
    s.size = s.size + permits
    s.inside = s.inside + permits
    s.newest = instant
  end

  function sliding_log.take(s, permits)
    sl_add(s, s.now + s.wait, permits)
    return s.newest
  end

  -- All permits that are still remembered are given back: whoever goes later was counted beside them.
  function sliding_log.cancel(s, permits, a, b, mark)
    if not s.found then return false end
    redis.call('LREM', s.key, -permits, mark)
    return false
  end

  -- Instants that are still to come.
  local function sl_ahead(s)
    local ahead = 0
    while ahead < s.size and sl_instant(s, s.size - 1 - ahead) > s.now do
      ahead = ahead + 1
    end
    return ahead
  end

  -- At the present instant, or at that of the last waiting call. Only the newest instants stay: those after now; at most the
  -- limit's permits of calls, which may still be given back; and behind them as many of charges, which close the window
  -- without the older ones. Of all that is older the number stays, in case that the limit is raised. The limit is the largest
  -- of all nodes.
  function sliding_log.charge(s, permits)
    local kept, ahead, gone = 2 * s.largest, sl_ahead(s), s.gone or 0
    local remembered = min(permits, kept)
    sl_add(s, max(s.newest, s.now), remembered)
    if remembered < permits then ahead = 0 end
    local dropped = max(0, s.size - gone - kept - ahead)
    s.gone = gone + dropped
    s.older = min(MOST, s.older + dropped + permits - remembered)
    s.inside = s.size - s.gone + s.older
  end

  function sliding_log.report(s, reply, outcome, mark)
    local remaining = s.size > 0 and s.newest > s.now and 0 or max(0, s.permits - s.inside)
    report(reply, outcome, remaining, s.size == 0 and 0 or max(0, s.newest + s.period - s.now), mark)
  end

  function sliding_log.save(s)
    local written = (slack > 0 or s.newest > s.now) and text(s.now) or '0'
    local header = text(s.shift) .. ' ' .. written .. ' ' .. text(s.largest) .. ' ' .. text(s.older)
    for i = 1, #s.added, 1000 do
      redis.call('RPUSH', s.key, unpack(s.added, i, min(i + 999, #s.added)))
    end
    local drop = s.gone or 0
    if s.stored == 0 and not s.found then
      redis.call('LPUSH', s.key, header)
    elseif drop > 0 then
      redis.call('LTRIM', s.key, drop, -1)
      redis.call('LSET', s.key, 0, header)
    else
      redis.call('LSET', s.key, 0, header)
    end
    redis.call('PEXPIRE', s.key, millis(s.newest + s.period - s.now))
  end

  return sliding_log
end
