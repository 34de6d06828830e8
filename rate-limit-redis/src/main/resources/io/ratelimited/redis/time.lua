-- Beginning of every script: the time, in microseconds since 1970.
--
-- ARGV[1]  nothing for the server's own, which stands still while the script runs; or this time of the calling node, where
--          the server refuses TIME to scripts: the answer is NOTIME then, and nothing has been done. Tests also say slack and
--          padding, because their time stands still while the server's goes on: "<time> <slack> <padding>"
-- slack    by how much the time may be behind that of the last call and yet be right: clocks of nodes differ
-- padding  milliseconds that a key outlives its expiry, which it must not reach by one node's clock before another's

local now, slack, padding = tonumber(ARGV[1]), 1000000, 1000
if not now then
  slack, padding = 0, 0
  if ARGV[1] == '' then
    local time = redis.pcall('TIME')
    if time.err then
      -- Redis 6.2 answers in two lines, and the second would be read as another reply.
      local why = string.gsub(time.err, '%c+', ' ')
      return redis.error_reply('NOTIME ' .. why)
    end
    now = time[1] * 1000000 + time[2]
  else
    now, slack, padding = string.match(ARGV[1], '^(%d+) (%d+) (%d+)$')
    now, slack, padding = now + 0, slack + 0, padding + 0
  end
end
