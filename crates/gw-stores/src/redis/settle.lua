-- Puts what was used in the place of what was taken, once. KEYS as they were taken.
-- Three of each limit in ARGV: kind, amount taken, amount used less amount taken.
if redis.call('DEL', KEYS[1]) == 0 then
  return 0
end
for i = 2, #KEYS do
  local at = 1 + (i - 2) * 3
  local kind, taken, more = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  if redis.call('EXISTS', KEYS[i]) == 1 then
    if kind == 'rate' then
      local level = tonumber(redis.call('HGET', KEYS[i], 'level')) + tonumber(more) * 60000000
      redis.call('HSET', KEYS[i], 'level', string.format('%.0f', math.max(0, level)))
    else
      redis.call('HINCRBY', KEYS[i], 'used', more)
      redis.call('HINCRBY', KEYS[i], 'held', taken == '0' and taken or '-' .. taken)
    end
  end
end
return 1
