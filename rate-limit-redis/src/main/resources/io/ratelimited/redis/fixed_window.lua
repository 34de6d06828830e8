-- A counter per window of the calendar.
--
-- KEYS   STRING of big-endian integers of 7 bytes, the last window anyone has a permit in: start, taken, epoch, and written if
--        the window is not the current one or nodes say the time; times in microseconds since 1970; written as in
--        virtual_time.lua; epoch: when the key began, so that what is cancelled after a reset gives nothing back
-- ARGV   permits   of one window
--        windows   microseconds of each. Of the calendar: "months/month/day": how many months each is, in which of them a year
--                  begins, and on which day, or on the last of a shorter month; 0 months: a week, from its day 1 to 7
--        offset, transition, offset, ...   microseconds east of UTC before the first transition, the instant of the
--                  transition, the offset from then on, and so forth; ended by an empty argument

local function fixed_window()
  local fixed_window = {}

  -- Weeks and months. Only windows of the calendar pay for the functions in here.
  local function fw_calendar(s, months, month, day)
    local DAY = 86400000000
    if months == 0 then
      -- 1970-01-01 was a Thursday.
      s.period, s.first = 7 * DAY, (day - 4) * DAY
      return
    end
    s.period = 31 * months * DAY
    local before = { 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334 }

    -- Days from 1970-01-01 to the first of a month; months are counted from January 1970.
    local function month_start(n)
      local year, in_year = 1970 + floor(n / 12), n % 12
      local leap = in_year > 1 and year % 4 == 0 and (year % 100 ~= 0 or year % 400 == 0)
      local past = year - 1
      local leap_days = floor(past / 4) - floor(past / 100) + floor(past / 400) - 477
      return 365 * (year - 1970) + leap_days + before[in_year + 1] + (leap and 1 or 0)
    end

    local function begin_in(n)
      local first = month_start(n)
      return first + min(day, month_start(n + 1) - first) - 1
    end

    function s.begin_of(index)
      return begin_in(index * months + month - 1) * DAY
    end

    function s.index_of(shown)
      local days = floor(shown / DAY)
      -- A month has 30.436875 days on average.
      local n = floor(days / 30.436875) + 1
      while begin_in(n) > days do n = n - 1 end
      return floor((n - month + 1) / months)
    end
  end

  local function fw_params(key, p)
    local s = { key = key, permits = tonumber(ARGV[p]), period = tonumber(ARGV[p + 1]), first = 0, zone = p + 2 }
    if not s.period then
      local months, month, day = match(ARGV[p + 1], '^(%d+)/(%d+)/(%d+)$')
      fw_calendar(s, tonumber(months), tonumber(month), tonumber(day))
    end
    return s
  end

  local function fw_offset(s, time)
    local at = s.zone
    while ARGV[at + 1] ~= '' and tonumber(ARGV[at + 1]) <= time do
      at = at + 2
    end
    return tonumber(ARGV[at])
  end

  local function fw_start(s, index)
    local at = s.zone
    local begin = s.begin_of and s.begin_of(index) or index * s.period + s.first
    while true do
      local start = begin - tonumber(ARGV[at])
      local transition = tonumber(ARGV[at + 1])
      if not transition or start < transition then return start end
      -- A beginning that the clocks leave out is the moment at which they are moved.
      if begin - tonumber(ARGV[at + 2]) < transition then return transition end
      at = at + 2
    end
  end

  local function fw_index(s, time)
    local shown = time + fw_offset(s, time)
    local index = s.index_of and s.index_of(shown) or floor((shown - s.first) / s.period)
    -- Clocks that are set back show a part of the window before once more: by less than two periods.
    for _ = 1, 2 do
      if fw_start(s, index + 1) > time then break end
      index = index + 1
    end
    return index
  end

  function fixed_window.open(key, p)
    local value = read('GET', key)
    local s = fw_params(key, p)
    local start, taken, epoch, written
    if value and #value >= 21 then
      start, taken, epoch = struct.unpack('>I7I7I7', value)
      written = #value >= 28 and struct.unpack('>I7', value, 22) or 0
      behind(written > 0 and written or start)
    end
    local index = fw_index(s, now)
    s.current = fw_start(s, index)
    s.start, s.taken, s.index, s.epoch = s.current, 0, index, now
    if start and start >= s.current then
      s.found = true
      s.taken = taken
      s.epoch = epoch
      local ahead = written > 0 and written < start and written - now <= s.period
      if start > now and not ahead and start - now > s.period then
        -- The clock has stepped back by more than a window: go on counting in this one.
        s.changed = true
      else
        s.start = start
        s.index = fw_index(s, start)
        if start > now and not ahead then
          -- The clock has stepped back a little: time stands still.
          s.current = start
        end
      end
    end
    repeat p = p + 1 until ARGV[p] == ''
    return s, p + 1
  end

  function fixed_window.decide(s, permits, a, b, longest)
    if permits > s.permits then return NEVER end
    s.next, s.next_taken, s.next_index = s.start, s.taken + permits, s.index
    if s.next_taken > s.permits then
      s.next_index = s.index + 1
      s.next, s.next_taken = fw_start(s, s.next_index), permits
    end
    if s.next == s.current then return 0 end
    local wait = max(0, s.next - now)
    return wait > longest and -(wait - longest) or wait
  end

  function fixed_window.take(s)
    local mark = format('%.0f@%.0f', s.next, s.epoch)
    if s.next > s.start then mark = mark .. format('@%.0f@%.0f', s.start, s.taken) end
    s.start, s.taken, s.index = s.next, s.next_taken, s.next_index
    return mark
  end

  -- Permits of the last window are given back; windows behind it are closed, until the waiting call that has opened it is the
  -- last to leave it. A count at its largest, after an enormous charge, may be too small already.
  function fixed_window.cancel(s, permits, a, b, mark)
    if not s.found or match(mark, '^%d+@%d+') ~= format('%.0f@%.0f', s.start, s.epoch) then return false end
    if s.taken == MOST then return false end
    s.taken = max(0, s.taken - permits)
    local start, taken = match(mark, '@(%d+)@(%d+)$')
    if s.taken == 0 and start and tonumber(start) >= s.current then
      s.start, s.taken = tonumber(start), tonumber(taken)
      s.index = fw_index(s, s.start)
    end
    return true
  end

  -- In the present window, or in the last one that a waiting call was granted; the count may exceed the limit.
  function fixed_window.charge(s, permits)
    s.taken = min(MOST, s.taken + permits)
  end

  -- Those of the present window.
  function fixed_window.charged(s, charges)
    local begin = min(s.current, now)
    local oldest = charges[1]
    while oldest and oldest[1] < begin do
      table.remove(charges, 1)
      oldest = charges[1]
    end
    local own = setmetatable({ start = s.current, index = fw_index(s, s.current), taken = 0 }, { __index = s })
    for _, charge in ipairs(charges) do own.taken = min(MOST, own.taken + charge[2]) end
    return own, fw_start(s, own.index + 1) - now
  end

  local function fw_remaining(s)
    return (s.start == s.current or s.start <= now) and max(0, s.permits - s.taken) or 0
  end

  -- A later window that was given back whole still closes those before it.
  local function fw_reset(s)
    if s.taken > 0 then return fw_start(s, s.index + 1) - now end
    return s.start == s.current and 0 or max(0, s.start - now)
  end

  function fixed_window.report(s, reply, outcome, mark)
    report(reply, outcome, fw_remaining(s), fw_reset(s), mark)
  end

  function fixed_window.save(s)
    local value = struct.pack('>I7I7I7', s.start, s.taken, s.epoch)
    if slack > 0 or s.start > s.current then value = value .. struct.pack('>I7', now) end
    redis.call('SET', s.key, value, 'PX', millis(fw_start(s, s.index + 1) - now))
  end

  return fixed_window
end
