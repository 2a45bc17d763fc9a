-- Takes of every limit, or of none. KEYS[1] is the hold; every other key is a limit.
-- ARGV[1] is how long it holds, in ms; then four of each limit: kind, limit, amount, end of the window in ms.
-- Answers nothing where all was taken; else the place of each limit that refused and its wait in us, -1 for never.
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000000 + tonumber(clock[2])
local MINUTE = 60000000
local refused, levels = {}, {}

-- The store does not read a negative zero.
local function negated(number)
  return number == '0' and number or '-' .. number
end

for i = 2, #KEYS do
  local at = 2 + (i - 2) * 4
  local kind, limit, amount = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  if kind == 'rate' then
    -- A level in tokens times us: a bucket of n a minute loses n of them each us. Exact below 2^53.
    local capacity, wanted = tonumber(limit), tonumber(amount)
    local kept = redis.call('HMGET', KEYS[i], 'level', 'at')
    local seen = tonumber(kept[2] or now)
    local passed = math.max(0, now - seen)
    local level = math.max(0, tonumber(kept[1] or 0) - passed * capacity)
    local after = level + wanted * MINUTE
    if wanted > capacity then
      refused[#refused + 1] = i - 2
      refused[#refused + 1] = -1
    elseif after > capacity * MINUTE then
      refused[#refused + 1] = i - 2
      refused[#refused + 1] = math.ceil((after - capacity * MINUTE) / capacity)
    else
      levels[i] = { after, math.max(now, seen), math.ceil(after / capacity / 1000) }
    end
  else
    -- Money has more digits than a script's numbers: the store adds whole ones, and only signs are looked at here.
    local kept = redis.call('HMGET', KEYS[i], 'used', 'held')
    redis.call('HSET', KEYS[i], 'try', kept[1] or '0')
    redis.call('HINCRBY', KEYS[i], 'try', amount)
    local over = redis.call('HINCRBY', KEYS[i], 'try', '-' .. limit)
    local settled = redis.call('HINCRBY', KEYS[i], 'try', negated(kept[2] or '0'))
    redis.call('HDEL', KEYS[i], 'try')
    if over > 0 then
      local left = tonumber(ARGV[at + 3]) * 1000 - now
      refused[#refused + 1] = i - 2
      -- Where only what is held stands in the way it may be free soon.
      refused[#refused + 1] = settled > 0 and math.max(0, left) or math.min(1000000, math.max(0, left))
    end
  end
end

if #refused > 0 then
  return refused
end
for i = 2, #KEYS do
  local at = 2 + (i - 2) * 4
  if levels[i] then
    redis.call('HSET', KEYS[i], 'level', string.format('%.0f', levels[i][1]), 'at', string.format('%.0f', levels[i][2]))
    redis.call('PEXPIRE', KEYS[i], levels[i][3] + 60000)
  else
    redis.call('HINCRBY', KEYS[i], 'used', ARGV[at + 2])
    redis.call('HINCRBY', KEYS[i], 'held', ARGV[at + 2])
    -- A day longer than the window, for what settles late.
    redis.call('PEXPIREAT', KEYS[i], tonumber(ARGV[at + 3]) + 86400000)
  end
end
redis.call('SET', KEYS[1], '1', 'PX', ARGV[1])
return refused
