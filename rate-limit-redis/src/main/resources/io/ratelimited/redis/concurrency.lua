-- Calls in flight.
--
-- KEYS   ZSET "<call>#<permits>", one a call -> when it stops counting, in microseconds since 1970; "+" -> 2^53 less the permits
--        of all calls beyond one each, if there are any
-- ARGV   permits   in flight at once
--        lease     microseconds after which a call no longer counts, unless its node says that it still runs, as it does every ten
--                  seconds
-- call   a         renew: microseconds after which this call no longer counts
--        tail      a name of the call, unique in the cluster
--
-- A refusal is UNKNOWN, since nobody can tell when other calls end, or NEVER. Cancelling is the same as ending.

local function concurrency()
  local concurrency = {}

  -- Later than all calls, so that it stays the last member.
  local FULL = 9007199254740992

  -- The lease of a call under a limit without one.
  local NODE_LEASE = 30000000
  -- So many calls are shortened at a time: a script must not take long.
  local MOST_SHORTENED = 1000

  -- Counts permits beyond one a call.
  local function cc_more(s, permits)
    if permits == 0 then return end
    s.more = max(0, s.more + permits)
    if s.more > 0 then
      redis.call('ZADD', s.key, text(FULL - s.more), '+')
    else
      redis.call('ZREM', s.key, '+')
    end
  end

  -- No call counts for longer than its lease: the clock has stepped back, as by a failover, and calls of a node that has died
  -- would count until it has caught up. A node with a longer lease says in time that its calls still run.
  local function cc_shorten(s)
    local last = now + max(s.lease, NODE_LEASE)
    local late = redis.call(
      'ZRANGEBYSCORE', s.key, '(' .. text(last + slack), text(FULL), 'LIMIT', 0, MOST_SHORTENED)
    for _, member in ipairs(late) do
      if member ~= '+' then
        redis.call('ZADD', s.key, text(last), member)
        s.changed = true
      end
    end
  end

  function concurrency.open(key, p)
    local s = { key = key, permits = tonumber(ARGV[p]), lease = tonumber(ARGV[p + 1]), more = 0 }
    local more = read('ZSCORE', key, '+')
    local ended = 0
    if more then
      s.more = FULL - more
      for _, member in ipairs(redis.call('ZRANGEBYSCORE', key, '-inf', text(now))) do
        ended = ended + match(member, '#(%d+)$') - 1
      end
    end
    -- Before the first command that a server without memory refuses: that runs behind one that has written.
    read('ZREMRANGEBYSCORE', key, '-inf', text(now))
    cc_more(s, -ended)
    s.used = (read('ZCARD', key) or 0) + s.more - (s.more > 0 and 1 or 0)
    if s.used > 0 and op ~= 'peek' then cc_shorten(s) end
    return s, p + 2
  end

  function concurrency.decide(s, permits, a, b, longest)
    if permits > s.permits then return NEVER end
    -- Whoever only asks about a call that may wait asks whether it would be refused at once.
    local may = s.used + permits <= s.permits or (op ~= 'take' and longest > 0)
    return may and 0 or UNKNOWN
  end

  local function cc_count(s, permits, lease, name)
    local added = redis.call('ZADD', s.key, text(now + lease), name .. '#' .. text(permits))
    cc_more(s, added * (permits - 1))
  end

  function concurrency.take(s, permits, name)
    cc_count(s, permits, s.lease, name)
    s.used = s.used + permits
    return 0
  end

  function concurrency.cancel(s, permits, a, b, name)
    cc_more(s, -redis.call('ZREM', s.key, name .. '#' .. text(permits)) * (permits - 1))
    return false
  end

  -- The call still runs on its node. A call that was forgotten, or never known here, counts from now on.
  function concurrency.renew(s, permits, lease, name)
    cc_count(s, permits, lease, name)
  end

  function concurrency.report(s, reply, outcome, mark)
    report(reply, outcome, max(0, s.permits - s.used), 0, mark)
  end

  function concurrency.save(s)
    local at = s.more > 0 and 1 or 0
    local last = redis.call('ZREVRANGE', s.key, at, at, 'WITHSCORES')
    if last[2] then redis.call('PEXPIRE', s.key, millis(last[2] - now)) end
  end

  return concurrency
end
