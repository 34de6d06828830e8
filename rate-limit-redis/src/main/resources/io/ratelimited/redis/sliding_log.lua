-- The instants of the last permits, and those granted in advance: one entry for all permits of an instant.
--
-- KEYS   LIST "<shift> <written> <total> <calls> <skip> <rest> <open> <empty>", then "<instant> <permits> <first>[/<sum>][ <call> ...]"
--        for each instant in order, in microseconds since 1970; shift is added to the clock after it has stepped back, so that
--        instants need not be rewritten; written as in virtual_time.lua; total: the sum of all permits below; calls: how many
--        were admitted since the key began; empty: how many entries have lost all permits since these were last removed, or
--        more, which may be missing; first: the number of the first call that this entry may hold; then the numbers of
--        its calls that gave permits back: <from>-<to> for several in a row
-- block  of so many entries, the first of which lacks those that have left, skip. The last entry of a block with others behind
--        it has the sum of the block; rest is the sum of the first block, and open that of the last one. So a script finds what
--        has left, and what has to leave, by blocks, and its time has a bound
-- ARGV   permits   of one period
--        period    microseconds

local function sliding_log()
  local sliding_log = {}

  local BLOCK = 500
  -- So many blocks are looked at in one script at most for when a call may go: one that could go only when more have left is
  -- refused until these have.
  local MOST_BLOCKS = 500
  -- When so many entries have been looked at, a call waits until a block has left, and not for one of its entries.
  local LOOKS = 1000
  -- So many at a time.
  local CHUNK = 128
  -- So many that have left the window are removed by a refused call, too.
  local LITTER = 200
  -- Of so many blocks, the newest, entries without permits are removed when they are the most: calls that are given back whole
  -- leave the list as long as the others make it. Those of older blocks stay until they leave the window.
  local RECENT = 40
  -- So many numbers and rows of numbers of calls that gave permits back are kept for an instant. Rows are no more than the calls
  -- beside them that have their permits, so that only an instant of more such calls has more: none of its calls gives back then,
  -- and nobody gets more.
  local GIVEN = 1000

  local function sl_parse(value)
    local instant, permits, first, sum, given = match(value, '^(%d+) (%d+) (%d+)/?(%d*)(.*)$')
    return { instant = instant + 0, permits = permits + 0, first = first + 0, sum = tonumber(sum), given = given }
  end

  -- The entry at a position, counted from 0; more behind it are read along.
  local function sl_entry(s, position, more)
    local entry = s.entries[position]
    if not entry then
      for i, value in ipairs(redis.call('LRANGE', s.key, position + 1, position + 1 + (more or 0))) do
        local at = position + i - 1
        s.entries[at] = s.entries[at] or sl_parse(value)
        s.looks = s.looks + 1
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

  -- The sum of the block that begins at a position.
  local function sl_sum(s, begin)
    local last = begin + BLOCK - 1
    return last < s.size - 1 and sl_entry(s, last).sum or s.open
  end

  local function sl_header(s, shift, written)
    return text(shift) .. ' ' .. written .. ' ' .. text(s.total) .. ' ' .. text(s.calls) .. ' ' .. text(s.skip) .. ' ' ..
      text(s.rest) .. ' ' .. text(s.open) .. ' ' .. text(s.empty)
  end

  -- Leaves out the oldest entry.
  local function sl_drop(s, entry)
    s.total, s.rest = s.total - entry.permits, s.rest - entry.permits
    if entry.permits == 0 then s.empty = max(0, s.empty - 1) end
    s.gone, s.skip = s.gone + 1, s.skip + 1
    if s.skip == BLOCK then s.skip, s.rest = 0, sl_sum(s, s.gone) end
  end

  -- The same for all, and what follows from it for the first block.
  local function sl_settle(s, all)
    if all or s.gone == s.size then s.gone, s.total, s.newest, s.skip, s.rest = s.size, 0, 0, 0, 0 end
    if s.size - s.gone + s.skip <= BLOCK then s.open = s.rest end
  end

  -- Leaves out the oldest entries that have left the window, so many at the most; returns whether that may not be all.
  local function sl_leave(s, most)
    for _ = 1, min(most, s.size - s.gone) do
      local entry = sl_entry(s, s.gone, s.gone > 0 and CHUNK - 1 or 0)
      if entry.instant + s.period > s.now then return false end
      sl_drop(s, entry)
    end
    return s.gone < s.size
  end

  -- The same for whole blocks, which are removed at once when there are many: that changes no decision.
  local function sl_leave_blocks(s, shift, written)
    local last = s.gone + BLOCK - s.skip - 1
    while last < s.size - 1 and sl_entry(s, last).instant + s.period <= s.now do
      s.total, s.gone, s.skip = s.total - s.rest, last + 1, 0
      s.rest = sl_sum(s, s.gone)
      if s.gone > 10 * BLOCK then
        redis.call('LTRIM', s.key, s.gone, -1)
        redis.call('LSET', s.key, 0, sl_header(s, shift, written))
        s.size, s.stored, s.gone, s.entries = s.size - s.gone, s.stored - s.gone, 0, {}
      end
      last = s.gone + BLOCK - 1
    end
  end

  local function sl_read(s, header)
    local shift, written, total, calls, skip, rest, open, empty =
      match(header, '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) ?(%d*)$')
    s.stored = redis.call('LLEN', s.key) - 1
    s.size, s.total, s.calls, s.skip, s.rest, s.open = s.stored, total + 0, calls + 0, skip + 0, rest + 0, open + 0
    s.empty = tonumber(empty) or 0
    s.shift = shift + 0
    s.now = now + s.shift
    sl_find_newest(s)
    local held = written + 0 == 0 and s.newest or written + 0
    if held > s.now then
      if held - s.now > slack then
        s.shift = s.shift + held - s.now
        s.changed = true
      end
      s.now = held
    end
    if sl_leave(s, CHUNK) then
      sl_leave_blocks(s, shift, written)
      sl_leave(s, BLOCK)
    end
    sl_settle(s)
    s.changed = s.changed or s.gone > LITTER
    s.found = true
  end

  function sliding_log.open(key, p)
    local s = { key = key, permits = tonumber(ARGV[p]), period = tonumber(ARGV[p + 1]), entries = {}, dirty = {}, gone = 0,
      size = 0, stored = 0, shift = 0, total = 0, calls = 0, now = now, newest = 0, skip = 0, rest = 0, open = 0, empty = 0, looks = 0,
      blocks = {}, ends = {} }
    local header = read('LINDEX', key, 0)
    if header then sl_read(s, header) end
    return s, p + 2
  end

  -- s.blocks   those from the oldest on that were looked at: where each begins, how many entries it has, the permits before
  --            it, and the sums of its first entries; kept for the next call
  -- s.ends     the sums of permits up to the end of each
  local function sl_measure(s, k)
    local block = s.blocks[k]
    block.size = min(s.size - block.begin, k == 1 and BLOCK - s.skip or BLOCK)
    s.ends[k] = block.before + (k == 1 and s.rest or sl_sum(s, block.begin))
  end

  -- The block in which so many permits from the oldest on end; nil if that is behind those that may be looked at.
  local function sl_block(s, permits)
    local known = #s.ends
    if known > 0 and s.ends[known] >= permits then return s.blocks[find(s.ends, 1, known, permits)] end
    for k = known + 1, MOST_BLOCKS do
      local before = s.blocks[k - 1]
      s.blocks[k] = { begin = before and before.begin + before.size or s.gone, before = s.ends[k - 1] or 0, sums = { [0] = 0 } }
      sl_measure(s, k)
      if s.ends[k] >= permits then return s.blocks[k] end
    end
  end

  -- The last of the oldest entries that have to leave the window until so many permits have.
  local function sl_until(s, permits)
    local block = sl_block(s, permits)
    if not block then
      block = s.blocks[#s.blocks]
      return block.begin + block.size - 1, true
    end
    local sums, inside = block.sums, permits - block.before
    while sums[#sums] < inside do
      local position = block.begin + #sums
      if s.looks > LOOKS and not s.entries[position] then return block.begin + block.size - 1 end
      sums[#sums + 1] = sums[#sums] + sl_ahead(s, position).permits
    end
    return block.begin + find(sums, 1, #sums, inside) - 1
  end

  function sliding_log.decide(s, permits, a, b, longest)
    local wait, over = max(0, s.newest - s.now), s.total + permits - s.permits
    if permits > s.permits then return NEVER end
    if over > 0 then
      local last, more = sl_until(s, over)
      local leaves = sl_entry(s, last).instant + s.period - s.now
      if more then return -max(1, leaves - longest) end
      wait = max(wait, leaves)
    end
    s.wait = wait
    return wait > longest and -(wait - longest) or wait
  end

  -- What is known of the blocks from a position on changes.
  local function sl_touch(s, position)
    s.dirty[position] = true
    local k = #s.ends
    while k > 0 and s.blocks[k].begin >= position do
      s.blocks[k], s.ends[k] = nil, nil
      k = k - 1
    end
    if k > 0 then
      local sums = s.blocks[k].sums
      for i = #sums, position - s.blocks[k].begin + 1, -1 do sums[i] = nil end
      sl_measure(s, k)
    end
  end

  -- The number of an entry, counted from the beginning of the first block.
  local function sl_number(s, position)
    return position - s.gone + s.skip
  end

  -- Makes room below the largest sum for a charge, which counts in full: what was taken earlier counts less, and leaves first.
  local function sl_make_room(s, excess)
    local looks, over = s.looks, excess
    while over > 0 and s.gone < s.size and s.looks - looks < BLOCK do
      local entry = sl_entry(s, s.gone, CHUNK - 1)
      local less = min(over, entry.permits)
      over = over - less
      if less == entry.permits then
        sl_drop(s, entry)
      else
        entry.permits, s.rest, s.total, s.dirty[s.gone] = entry.permits - less, s.rest - less, s.total - less, true
      end
    end
    sl_settle(s, over > 0)
    s.blocks, s.ends = {}, {}
  end

  local function sl_add(s, instant, permits)
    if s.total + permits > MOST then sl_make_room(s, s.total + permits - MOST) end
    local last = s.size > s.gone and sl_entry(s, s.size - 1)
    if last and last.instant == instant then
      last.permits = last.permits + permits
    else
      if last and sl_number(s, s.size) % BLOCK == 0 then
        last.sum, s.dirty[s.size - 1], s.open = s.open, true, 0
      end
      s.entries[s.size] = { instant = instant, permits = permits, first = s.calls, given = '' }
      s.size = s.size + 1
    end
    s.open, s.total = s.open + permits, s.total + permits
    if sl_number(s, s.size) <= BLOCK then s.rest = s.open end
    sl_touch(s, s.size - 1)
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

  -- Writes the newest blocks anew, without the entries that have no permits left.
  local function sl_compact(s)
    local first = max(s.gone, s.size - RECENT * BLOCK)
    if first > s.gone then first = max(s.gone, first - sl_number(s, first) % BLOCK) end
    local kept = {}
    for position = first, s.size - 1 do
      local entry = sl_entry(s, position, CHUNK - 1)
      if entry.permits > 0 then kept[#kept + 1] = entry end
      s.entries[position], s.dirty[position] = nil, nil
    end
    redis.call('LTRIM', s.key, 0, first)
    s.size, s.stored, s.blocks, s.ends = first, first, {}, {}
    if first == s.gone then
      s.rest, s.open = 0, 0
    else
      -- The block before is whole, and is the last until another one follows.
      s.open = sl_number(s, first) == BLOCK and s.rest or sl_entry(s, first - 1).sum
    end
    for _, entry in ipairs(kept) do
      if s.size > first and sl_number(s, s.size) % BLOCK == 0 then
        s.entries[s.size - 1].sum = s.open
      end
      if sl_number(s, s.size) % BLOCK == 0 then s.open = 0 end
      entry.sum = nil
      s.entries[s.size], s.dirty[s.size] = entry, true
      s.open = s.open + entry.permits
      s.size = s.size + 1
      if sl_number(s, s.size) <= BLOCK then s.rest = s.open end
    end
    s.empty = 0
    sl_settle(s)
    sl_find_newest(s)
  end

  -- The calls that gave permits back, and one more; nil if it is one of them.
  local function sl_given(s, entry, call)
    local from, to, others = call, call, {}
    for row, first, last in string.gmatch(entry.given, '( (%d+)%-?(%d*))') do
      first = first + 0
      last = tonumber(last) or first
      if first <= call and call <= last then return nil end
      if last == call - 1 then
        from = first
      elseif first == call + 1 then
        to = last
      else
        others[#others + 1] = row
      end
    end
    if #others >= GIVEN then return s.calls, '' end
    others[#others + 1] = ' ' .. text(from) .. (from < to and '-' .. text(to) or '')
    return entry.first, table.concat(others)
  end

  -- All permits that are still remembered are given back, once: whoever goes later was counted beside them. A sum at its
  -- largest, after an enormous charge, may be too small already.
  function sliding_log.cancel(s, permits, a, b, mark)
    local instant, call = match(mark, '^(%d+) (%d+)$')
    local position = s.found and instant and s.total < MOST and sl_position(s, instant + 0)
    if not position then return false end
    local entry = sl_entry(s, position)
    if call + 0 < entry.first or call + 0 >= s.calls then return false end
    local first, given = sl_given(s, entry, call + 0)
    if not first then return false end
    local back = min(permits, entry.permits)
    entry.permits, entry.first, entry.given = entry.permits - back, first, given
    s.total = s.total - back
    if back > 0 and entry.permits == 0 then s.empty = s.empty + 1 end
    local number, last = sl_number(s, position), sl_number(s, s.size - 1)
    if number < BLOCK then s.rest = s.rest - back end
    local behind_block = position - number % BLOCK + BLOCK
    if behind_block >= s.size then
      s.open = s.open - back
    elseif number >= BLOCK then
      local end_of_block = sl_entry(s, behind_block - 1)
      end_of_block.sum, s.dirty[behind_block - 1] = end_of_block.sum - back, true
    end
    while last >= s.skip and sl_entry(s, s.size - 1).permits == 0 do
      s.size, s.empty = s.size - 1, max(0, s.empty - 1)
      s.entries[s.size], s.dirty[s.size] = nil, nil
      if last > s.skip and last % BLOCK == 0 then
        s.open = last == BLOCK and s.rest or sl_entry(s, s.size - 1).sum
      end
      last = last - 1
    end
    sl_touch(s, min(position, s.size))
    sl_find_newest(s)
    if s.empty > BLOCK / 2 and 2 * s.empty > min(s.size - s.gone, RECENT * BLOCK) then sl_compact(s) end
    return true
  end

  -- At the present instant, or at that of the last waiting call.
  function sliding_log.charge(s, permits)
    sl_add(s, max(s.newest, s.now), permits)
  end

  -- A log that is nowhere stored: with all its entries here, in one block.
  function sliding_log.charged(s, charges)
    local oldest = charges[1]
    while oldest and oldest[1] + s.period <= now do
      table.remove(charges, 1)
      oldest = charges[1]
    end
    local own = { permits = s.permits, period = s.period, entries = {}, gone = 0, size = #charges, skip = 0, now = now, newest = 0,
      total = 0, looks = 0, blocks = {}, ends = {} }
    for i, charge in ipairs(charges) do
      own.entries[i - 1] = { instant = charge[1], permits = charge[2] }
      own.total, own.newest = min(MOST, own.total + charge[2]), charge[1]
    end
    own.rest, own.open = own.total, own.total
    return own, s.period
  end

  function sliding_log.report(s, reply, outcome, mark)
    local remaining = s.newest > s.now and 0 or max(0, s.permits - s.total)
    report(reply, outcome, remaining, max(0, s.newest + s.period - s.now), mark)
  end

  local function sl_text(entry)
    local sum = entry.sum and '/' .. text(entry.sum) or ''
    return text(entry.instant) .. ' ' .. text(entry.permits) .. ' ' .. text(entry.first) .. sum .. entry.given
  end

  function sliding_log.save(s)
    local written = (slack > 0 or s.newest > s.now) and text(s.now) or '0'
    local header = sl_header(s, s.shift, written)
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
    for begin = 1, #added, 1000 do
      redis.call('RPUSH', s.key, unpack(added, begin, min(begin + 999, #added)))
    end
    if s.found then
      if s.gone > 0 then redis.call('LTRIM', s.key, s.gone, -1) end
      redis.call('LSET', s.key, 0, header)
    end
    redis.call('PEXPIRE', s.key, millis(s.newest + s.period - s.now))
  end

  return sliding_log
end
