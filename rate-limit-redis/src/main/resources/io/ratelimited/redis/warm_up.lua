-- Guava's warm-up: stored permits, which are dearer the more there are, and the time N at which the next call may go.
--
-- KEYS   STRING "<meta> <N> <rest> <stored> <written>": N in microseconds since 1970 and rest nanoseconds (with their
--        fraction), stored permits as of N, written as in virtual_time.lua
-- ARGV   meta      begins the state
--        interval  nanoseconds of a fresh permit
--        threshold, most, slope, refill  permits, permits, nanoseconds per permit squared, nanoseconds per stored permit
--
-- Nanoseconds as doubles, in the order of the Java step, so that both agree to the last bit.

local function warm_up()
  local warm_up = {}

  local function wu_params(key, p)
    return {
      key = key, meta = ARGV[p], interval = tonumber(ARGV[p + 1]), threshold = tonumber(ARGV[p + 2]),
      most = tonumber(ARGV[p + 3]), slope = tonumber(ARGV[p + 4]), refill = tonumber(ARGV[p + 5])
    }
  end

  local function wu_read(s, value)
    local n, nanos, fraction, stored, written = match(value, '^%S+ (%d+) (%d+) (%S+) (%S+) (%d+)$')
    s.n, s.nanos, s.fraction, s.stored = tonumber(n), tonumber(nanos), tonumber(fraction), tonumber(stored)
    written = tonumber(written)
    if behind(written > 0 and written or s.n) then
      if written > 0 then
        s.n = s.n - (written - now)
      else
        s.n, s.nanos, s.fraction = now, 0, 0
      end
      s.changed = true
    end
    return s
  end

  -- N less now, in nanoseconds.
  local function wu_ahead(s)
    return (s.n - now) * 1000 + s.nanos
  end

  local function wu_refilled(s)
    local idle = -wu_ahead(s)
    if idle < 0 or (idle == 0 and s.fraction > 0) then
      return s.stored, s.n, s.nanos, s.fraction
    end
    local stored = s.most == 0 and 0 or min(s.most, s.stored + (idle - s.fraction) / s.refill)
    return stored, now, 0, 0
  end

  -- Nanoseconds until N, rounded up.
  local function wu_due(s)
    return wu_ahead(s) + (s.fraction > 0 and 1 or 0)
  end

  -- Goes on with a state under other parameters: debt in permits, and the share of what is stored, since stored permits are
  -- the dearer ones.
  local function wu_convert(s, value)
    local permits, period, warmup, cold = match(value, '^(%d+)/([^/ ]+)/(%d+)/(%S+) ')
    if not permits then return false end
    local interval = period / permits
    local threshold = 0.5 * warmup / interval
    local old = { most = threshold + 2.0 * warmup / (interval + interval * cold) }
    old.refill = old.most > 0 and warmup / old.most or 0
    wu_read(old, value)
    local stored = wu_refilled(old)
    s.n, s.nanos, s.fraction = now + min(FAR, ceil(max(0, wu_due(old)) / interval * s.interval / 1000)), 0, 0
    s.stored = old.most == 0 and s.most or s.most * (stored / old.most)
    s.changed = op == 'take' or op == 'ask'
    return true
  end

  function warm_up.open(key, p)
    local value = read('GET', key)
    local s = wu_params(key, p)
    if value and match(value, '^%S+') == s.meta then
      wu_read(s, value)
      s.found = true
    elseif not (value and wu_convert(s, value)) then
      s.n, s.nanos, s.fraction, s.stored = now, 0, 0, s.most
    end
    return s, p + 6
  end

  function warm_up.decide(s, permits, a, b, longest)
    local wait = max(0, ceil(wu_due(s) / 1000))
    if wait > FAR then return UNKNOWN end
    return wait > longest and -(wait - longest) or wait
  end

  local function wu_text(n, nanos, fraction, stored)
    return text(n) .. ' ' .. text(nanos) .. ' ' .. format('%.17g', fraction) .. ' ' .. format('%.17g', stored)
  end

  local function wu_spend(s, permits)
    local over = s.stored - s.threshold
    local above = over > permits and permits or max(0, over)
    local cost = permits * s.interval + s.slope * above * (over - above / 2) + s.fraction
    local whole = floor(cost)
    s.stored, s.fraction = max(0, s.stored - permits), cost - whole
    s.nanos = s.nanos + whole % 1000
    s.n = s.n + floor(whole / 1000)
    if s.nanos >= 1000 then
      s.n, s.nanos = s.n + 1, s.nanos - 1000
    end
  end

  function warm_up.take(s, permits)
    s.stored, s.n, s.nanos, s.fraction = wu_refilled(s)
    local before = wu_text(s.n, s.nanos, s.fraction, s.stored)
    wu_spend(s, permits)
    return before .. ' > ' .. wu_text(s.n, s.nanos, s.fraction, s.stored) .. ' > ' .. text(permits)
  end

  -- Undone exactly while it is the last; otherwise the times of those behind stand and nothing is free. What is kept of a
  -- grant is spent anew.
  function warm_up.cancel(s, permits, a, b, mark)
    local before, after, granted = match(mark, '^(.*) > (.*) > (%d+)$')
    if not s.found or wu_text(s.n, s.nanos, s.fraction, s.stored) ~= after then return false end
    wu_read(s, s.meta .. ' ' .. before .. ' ' .. text(now))
    if permits < tonumber(granted) then wu_spend(s, granted - permits) end
    return true
  end

  -- The next caller pays.
  function warm_up.charge(s, permits)
    s.stored, s.n, s.nanos, s.fraction = wu_refilled(s)
    local before = s.n
    wu_spend(s, permits)
    if s.n - now >= FAR then
      s.n, s.nanos, s.fraction = max(before, now + FAR), 0, 0
    end
  end

  -- The next call goes whatever it asks for; the one behind it pays, and never goes at once.
  function warm_up.report(s, reply, outcome, mark)
    local due = wu_due(s)
    report(reply, outcome, due > 0 and 0 or 1, max(0, ceil(due / 1000)), mark)
  end

  function warm_up.save(s)
    local fresh = max(0, ceil((wu_due(s) + ceil((s.most - s.stored) * s.refill)) / 1000))
    if fresh == 0 and slack == 0 then
      redis.call('DEL', s.key)
      return
    end
    redis.call('SET', s.key,
      s.meta .. ' ' .. wu_text(s.n, s.nanos, s.fraction, s.stored) .. ' ' .. ((slack > 0 or s.n >= now) and text(now) or '0'),
      'PX', millis(fresh))
  end

  return warm_up
end
