-- Calls in flight.
--
-- KEYS   ZSET one member a permit -> when it stops counting, in microseconds since 1970
-- ARGV   permits   in flight at once
--        lease     microseconds after which a call no longer counts, unless its node says that it still runs
-- call   a         renew: microseconds after which this call no longer counts; 0 for the lease of the limit
--        tail      a name of the call, unique in the cluster
--
-- A refusal is UNKNOWN: nobody can tell when other calls end. Cancelling is the same as ending.

local function concurrency()
  local concurrency = {}

  function concurrency.open(key, p)
    read('ZREMRANGEBYSCORE', key, '-inf', text(now))
    local s = { key = key, permits = tonumber(ARGV[p]), lease = tonumber(ARGV[p + 1]), used = read('ZCARD', key) or 0 }
    return s, p + 2
  end

  function concurrency.decide(s, permits, a, b, longest)
    -- A peek for a call that may wait asks whether the call would be refused at once.
    local may = s.used + permits <= s.permits or (op == 'peek' and longest > 0)
    return may and 0 or UNKNOWN
  end

  function concurrency.take(s, permits, name)
    for i = 1, permits do
      redis.call('ZADD', s.key, text(now + s.lease), name .. '#' .. i)
    end
    s.used = s.used + permits
    return 0
  end

  function concurrency.cancel(s, permits, a, b, name)
    for i = 1, permits do
      redis.call('ZREM', s.key, name .. '#' .. i)
    end
    return false
  end

  -- The call still runs on its node. A call that was forgotten, or never known here, counts from now on.
  function concurrency.renew(s, permits, lease, name)
    if lease == 0 then lease = s.lease end
    for i = 1, permits do
      redis.call('ZADD', s.key, text(now + lease), name .. '#' .. i)
    end
  end

  function concurrency.report(s, reply, outcome, mark)
    report(reply, outcome, max(0, s.permits - s.used), 0, mark)
  end

  function concurrency.save(s)
    local last = redis.call('ZREVRANGE', s.key, 0, 0, 'WITHSCORES')
    if last[2] then
      redis.call('PEXPIRE', s.key, millis(last[2] - now))
    end
  end

  return concurrency
end
