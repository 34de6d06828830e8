-- Blocks of keys that keep trying, and what is known for them: for calls under limits that have them. BlockRule.java has the
-- same steps, with their numbers.
--
-- KEYS   STRING of big-endian integers: begin and end of the last block, 7 bytes each, in microseconds since 1970; level, 2
--        bytes, the number of blocks without a quiet time between them. Level 0: the key was forgiven at the end; nodes that
--        know an earlier block learn of it. Then, unless all are 0: when a call was rejected that has not been judged yet, or 0;
--        since, what was reserved before does not count as charged: the key was reset then; the number of undecided calls, 2
--        bytes; when each of them took permits, in order; and what calls were charged: instant and permits, in order; 7 bytes
--        each
-- ARGV   packed: first, max   microseconds of the first and of the longest block
--        a, b      the cost of one permit, as of a call
--        lifted    blocks that began until then have ended for good, in microseconds since 1970
--        then the factor, as text
-- mark   the letter of a limit: b, a rejected call is a violation; c, only what calls are charged is one; -, no blocks
-- reply  for each limit with blocks: microseconds until the block ends, or minus those since it ended; level; microseconds of a
--        block that this script has begun, or 0; whether Redis has a block or a forgiveness of the key; microseconds since
--        that began; now

local function block()
  local block = {}

  local MOST_LEVEL = 1000
  -- A value with a longer block is none that a script has written.
  local LONGEST = 31536001000000
  -- A node knows the begin and the end of a block as late as it has learned of it: by the timeout of a reply. A forgiveness
  -- counts for the benefit of the key.
  local LEARNED = 50000
  local FORGIVEN = 1000000
  -- A call whose instance has not said until then what has become of it has used its permits.
  local UNDECIDED = 10000000
  local MOST_UNDECIDED = 1000

  function block.open(key, p, mark)
    local s = { key = key, mark = mark, begin = 0, finish = 0, level = 0, begun = 0, known = 0, rejected = 0, undecided = {},
      since = 0, charges = '' }
    s.first, s.max, s.a, s.b, s.lifted = struct.unpack('>I7I7I7I7I7', ARGV[p])
    s.factor = tonumber(sub(ARGV[p], 36))
    local value = read('GET', key)
    if value and #value > 15 then
      local begin, finish, level = struct.unpack('>I7I7I2', value)
      if (finish > begin or (finish == begin and level == 0 and finish > 0)) and finish - begin <= LONGEST then
        s.begin, s.finish, s.level, s.known = begin, finish, level, 1
      end
      if behind(s.begin) then
        -- The clock has stepped back behind the block: it begins now, and is no longer than it was.
        s.begin, s.finish, s.changed = now, now + s.finish - s.begin, true
      end
      if s.begin <= s.lifted then s.finish, s.level = min(s.finish, s.lifted), 0 end
      if #value > 31 then
        local rejected, since, undecided = struct.unpack('>I7I7I2', value, 17)
        local charges = 33 + 7 * undecided
        if charges <= #value + 1 and (#value + 1 - charges) % 14 == 0 then
          s.rejected, s.since, s.charges = rejected, min(now, since), sub(value, charges)
          for at = 33, charges - 1, 7 do
            local took = struct.unpack('>I7', value, at)
            s.undecided[#s.undecided + 1] = took
          end
        end
      end
    end
    return s
  end

  -- What calls of a key were charged: a list of { instant, permits }. Only who settles reads it.
  function block.charges(s)
    local charges = {}
    for at = 1, #s.charges, 14 do
      local instant, permits = struct.unpack('>I7I7', s.charges, at)
      -- The clock may have stepped back.
      charges[#charges + 1] = { min(instant, now), permits }
    end
    return charges
  end

  -- Notes what calls were charged; it counts for so long.
  function block.charge(s, charges, lasts)
    local parts = {}
    for i, charge in ipairs(charges) do parts[i] = struct.pack('>I7I7', charge[1], charge[2]) end
    s.charges, s.lasts, s.changed = table.concat(parts), lasts, true
  end

  function block.left(s)
    return max(0, s.finish - now)
  end

  -- B2 and B3.
  function block.offend(s)
    if s.finish > now then return end
    if now - s.finish >= s.max then s.level = 0 end
    s.level = min(MOST_LEVEL, s.level + 1)
    local length = s.first
    for _ = 2, s.level do
      if length >= s.max or s.factor <= 1 then break end
      length = min(s.max, ceil(length * s.factor))
    end
    s.begin, s.finish, s.begun, s.known, s.changed = now, now + length, length, 1, true
  end

  -- A rejection is judged when all calls are decided that held permits when it came.
  local function judge(s)
    while #s.undecided > MOST_UNDECIDED or (s.undecided[1] and max(now - s.undecided[1], s.undecided[1] - now) > UNDECIDED) do
      table.remove(s.undecided, 1)
      s.changed = true
    end
    if s.rejected > 0 and (not s.undecided[1] or s.undecided[1] > s.rejected) then
      s.rejected, s.changed = 0, true
      block.offend(s)
    end
  end

  function block.reject(s)
    judge(s)
    if s.finish > now or s.rejected > 0 then return end
    s.rejected = now
    judge(s)
    s.changed = true
  end

  function block.hold(s)
    s.undecided[#s.undecided + 1], s.changed = now, true
  end

  -- An undecided call is decided. If it gives permits back, nobody has violated the limit who was rejected after it had taken them.
  function block.decide(s, since, gives_back)
    for i = 1, #s.undecided do
      if s.undecided[i] == since then
        table.remove(s.undecided, i)
        s.changed = true
        break
      end
    end
    if gives_back and s.rejected > 0 and s.rejected >= since then s.rejected, s.changed = 0, true end
    judge(s)
  end

  -- A block that a node knows: it began there while it could not ask, or Redis has lost it. It may be over; its level counts
  -- all the same.
  function block.impose(s, left, ago, length, level)
    local finish = now + left - ago
    local begin = finish - length
    local forgiven = s.known == 1 and s.level == 0 and s.finish + FORGIVEN >= begin
    if forgiven or begin <= s.lifted or now - finish >= s.max then return end
    if s.known == 0 or s.level < level then
      s.level, s.known, s.changed = min(MOST_LEVEL, level), 1, true
    end
    if finish > s.finish and (s.finish <= now or finish - s.finish > LEARNED) then
      s.begin, s.finish, s.changed = begin, finish, true
    end
  end

  -- What was reserved until now does not count as charged, for so long. That all keys are forgiven is known until the last block
  -- that began before is forgotten, however long blocks were then.
  function block.forgive(s, lasts, all)
    if all then lasts = 2 * LONGEST end
    s.begin, s.finish, s.level, s.known, s.rejected, s.changed = now, now, 0, 1, 0, true
    s.since, s.charges, s.lasts = lasts and now or 0, '', lasts
  end

  function block.report(s, reply)
    local n = #reply
    reply[n + 1], reply[n + 2], reply[n + 3] = s.finish - now, s.level, s.begun
    reply[n + 4], reply[n + 5], reply[n + 6] = s.known, now - s.begin, now
  end

  -- A quiet time forgives.
  function block.save(s)
    local value = struct.pack('>I7I7I2', s.begin, s.finish, s.level)
    local lasts = s.known == 1 and max(0, s.finish - now) + s.max or 0
    local judged, charged = s.rejected > 0 or s.undecided[1], s.since > 0 or s.charges ~= ''
    if judged then lasts = max(lasts, UNDECIDED) end
    if charged then lasts = max(lasts, s.lasts or (redis.call('PTTL', s.key) - padding) * 1000) end
    if judged or charged then
      local parts = { value, struct.pack('>I7I7I2', s.rejected, s.since, #s.undecided) }
      for _, took in ipairs(s.undecided) do parts[#parts + 1] = struct.pack('>I7', took) end
      value = table.concat(parts) .. s.charges
    end
    if lasts > 0 then
      redis.call('SET', s.key, value, 'PX', millis(lasts))
    else
      redis.call('DEL', s.key)
    end
  end

  return block
end
