package redisstore

import "github.com/callgate/callgate/internal/redisconn"

// The scripts know nothing of calls. KEYS[1] is the epoch; the names of all other keys begin as its name
// does, so that all are in one slot.
//
// ARGV: the epoch, or * where none is to be compared; a token, which the reply repeats, so that the reply to
// another request is told apart; then what each script takes. A reply is a code, the token, the time of
// Redis in microseconds, and what the script returns.
//
// A record is a hash: r is its revision, h and b its head and its body. An index is a sorted set, by time and id.
const common = `
local base, at = string.sub(KEYS[1], 1, -6), 3
local function take()
  at = at + 1
  return ARGV[at - 1]
end
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local function say(code, rest)
  local reply = {code, ARGV[2], string.format('%.0f', now)}
  for _, v in ipairs(rest or {}) do reply[#reply + 1] = v end
  return reply
end
if ARGV[1] ~= '*' and redis.call('GET', KEYS[1]) ~= ARGV[1] then return say('epoch') end
`

// commitScript: the name of the commit, and until when it may be made. Then lists, each behind its length:
// records (key, revision, what is done: = nothing, - removed, h a new head, b a new head and body), rooms
// (index, from, how many rows there may be); whose calls are bounded, or nothing (and bounds of those, and of
// all: calls, bytes); rows that are removed (index, id), rows that are added (index, time, id), and counts
// (whose; calls, bytes, and of both what may be evicted). It returns which records conflict, or what is
// kept after the commit, of the first that it counts and in all.
//
// Where a record has the revision of the commit, it was made before, and its reply was lost.
var commitScript = redisconn.NewScript(common + `
local id, before = take(), take()
if now > tonumber(before) then return say('late') end
local records, conflicts = {}, {}
for i = 1, tonumber(take()) do
  local key, rev, does = base .. take(), take(), take()
  local r = {key, does}
  if does == 'h' or does == 'b' then r[3] = take() end
  if does == 'b' then r[4] = take() end
  records[i] = r
  local is = redis.call('HGET', key, 'r') or ''
  if is == id then return say('ok') end
  if is ~= rev then conflicts[#conflicts + 1] = tostring(i - 1) end
end
if #conflicts > 0 then return say('conflict', conflicts) end
for _ = 1, tonumber(take()) do
  local index, from, most = base .. take(), take(), tonumber(take())
  if redis.call('ZCOUNT', index, from, '+inf') >= most then return say('full') end
end
local function kept(key)
  local f = redis.call('HMGET', key, 'n', 'b', 'sn', 'sb')
  for i = 1, 4 do f[i] = tonumber(f[i] or 0) end
  return f
end
local whose = take()
if whose ~= '' then
  for _, key in ipairs({base .. 'of:' .. whose, base .. 'total'}) do
    local f, calls, bytes = kept(key), tonumber(take()), tonumber(take())
    if f[1] - f[3] >= calls or f[2] - f[4] >= bytes then return say('full') end
  end
end
for _, r in ipairs(records) do
  if r[2] == '-' then redis.call('DEL', r[1])
  elseif r[2] == 'h' then redis.call('HSET', r[1], 'r', id, 'h', r[3])
  elseif r[2] == 'b' then redis.call('HSET', r[1], 'r', id, 'h', r[3], 'b', r[4]) end
end
for _ = 1, tonumber(take()) do
  local index, row = base .. take(), take()
  redis.call('ZREM', index, row)
end
for _ = 1, tonumber(take()) do
  local index, time, row = base .. take(), take(), take()
  redis.call('ZADD', index, time, row)
end
local first
for _ = 1, tonumber(take()) do
  local of = base .. 'of:' .. take()
  first = first or of
  local left = 1
  for _, field in ipairs({'n', 'b', 'sn', 'sb'}) do
    local more = take()
    if more ~= '0' then
      redis.call('HINCRBY', base .. 'total', field, more)
      local sum = redis.call('HINCRBY', of, field, more)
      if field == 'n' then left = sum end
    end
  end
  if left <= 0 then redis.call('DEL', of) end
end
local usage = {}
if first then
  for _, key in ipairs({first, base .. 'total'}) do
    for _, n in ipairs(kept(key)) do usage[#usage + 1] = string.format('%.0f', n) end
  end
end
return say('ok', usage)
`)

// viewScript: keys. It returns revision, head and body of each.
var viewScript = redisconn.NewScript(common + `
local found = {}
for i = at, #ARGV do
  for _, v in ipairs(redis.call('HMGET', base .. ARGV[i], 'r', 'h', 'b')) do found[#found + 1] = v or '' end
end
return say('ok', found)
`)

// revisionsScript: keys. It returns the revision of each.
var revisionsScript = redisconn.NewScript(common + `
local found = {}
for i = at, #ARGV do found[#found + 1] = redis.call('HGET', base .. ARGV[i], 'r') or '' end
return say('ok', found)
`)

// scanScript: an index, the row behind which it begins (time, or nothing where the rows have none, and id), the time
// behind which it ends, how many. It returns times and ids.
var scanScript = redisconn.NewScript(common + `
local index, from, id, to, most = base .. take(), take(), take(), take(), tonumber(take())
local found = {}
local function add(rows, id)
  for i = 1, #rows, 2 do
    if #found < 2 * most and (not id or rows[i] > id) then
      found[#found + 1], found[#found + 2] = rows[i + 1], rows[i]
    end
  end
end
if from == '' then
  for _, row in ipairs(redis.call('ZRANGEBYLEX', index, id == '' and '-' or '(' .. id, '+', 'LIMIT', 0, most)) do add({row, '0'}) end
else
  if id ~= '' then add(redis.call('ZRANGEBYSCORE', index, from, from, 'WITHSCORES'), id) end
  if #found < 2 * most then add(redis.call('ZRANGEBYSCORE', index, '(' .. from, to, 'WITHSCORES', 'LIMIT', 0, most)) end
end
return say('ok', found)
`)

// agreeScript: the instance, a new epoch, a node that has put back what it knows and the attempt of that, 1 where
// its log is incomplete, how many nodes there are, and the round. It returns the epoch of the instance, once all have
// come to the end of the second round, and nothing before.
// The epoch ends with ? while a log is incomplete.
var agreeScript = redisconn.NewScript(common + `
local instance, fresh, node, attempt, incomplete, nodes = take(), take(), take(), take(), take(), tonumber(take())
local round = take()
if redis.call('GET', base .. 'reading:' .. node) ~= attempt then return say('again') end
local epoch = redis.call('GET', KEYS[1])
local current = epoch and string.sub(epoch, 1, #instance) == instance
if epoch and not current then redis.call('DEL', KEYS[1]) end
local seeded, gaps = base .. 'seeded:' .. instance .. ':', base .. 'gaps:' .. instance
redis.call(incomplete == '1' and 'SADD' or 'SREM', gaps, node)
if not current then
  redis.call('SADD', seeded .. round, node)
  redis.call('PEXPIRE', seeded .. round, 86400000)
  local n = redis.call('SCARD', seeded .. round)
  if n < nodes then return say('waiting', {tostring(n)}) end
end
if round == '1' then return say('ok', {''}) end
redis.call('DEL', seeded .. '1', seeded .. '2')
local gap = redis.call('EXISTS', gaps) == 1
if not current or gap ~= (string.sub(epoch, -1) == '?') then
  epoch = fresh .. (gap and '?' or '')
  redis.call('SET', KEYS[1], epoch)
end
return say('ok', {epoch})
`)
