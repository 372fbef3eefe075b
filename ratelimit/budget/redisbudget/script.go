package redisbudget

import "github.com/redis/go-redis/v9"

// A counter in one window is a hash:
//
//	t, m    tokens and millionths of money that are spent, open reservations included
//	ot, om  those of the open reservations
//	e, n    the epoch, and how often the hash was changed in it
//	st, sm  as much of t and m as was put back after a loss
//	r:ID    an open reservation: its tokens and its money
//
// A gateway sends the state of a counter that it saw last (epoch, n, t, m) with its next request. If Redis has
// another epoch, or less of the same, then it has lost what was written. The largest of what the
// gateways have seen is put back, once: the first one adds what it has seen, the next ones as much
// as they have seen more. A lost reservation stays charged.
//
// All keys have one hash tag, so that all counters of a request are on one node of a cluster.

// prelude begins each script. ARGV[1] is the time in milliseconds where it is not to be Redis' own,
// and ARGV[2] the id of the reservation. A number is written without an exponent.
const prelude = `
local now = tonumber(ARGV[1])
if not now then
  local t = redis.call('TIME')
  now = t[1] * 1000 + math.floor(t[2] / 1000)
end
local id = ARGV[2]
local most = 1000000000000000
local function text(n) return string.format('%.0f', tonumber(n)) end
local function bounded(n) return math.max(0, math.min(n, most)) end
local reply = {id}
local function add(s) reply[#reply + 1] = s end
local function state(e, n, t, m, ot, om)
  add(table.concat({e, text(n), text(t), text(m), text(ot), text(om)}, '/'))
end
`

// reserveScript takes an amount of all counters, or of none. ARGV[3] and [4] are its tokens and its
// money, and [5] the candidate of an epoch. For each key follow 11: the bounds of its window, in
// milliseconds, and how long it is kept beyond; the bounds of tokens and money, 0 for none; what the
// gateway has seen (an empty epoch: nothing), and what it has granted while Redis was away.
//
// The reply is the id, a word, and for each key its state. The words are taken; full/I, where the
// I-th has no room; window/TIME, where one of the windows is not that of the clock: nothing was
// changed then; and foreign, where a key holds something else. Without a bound nothing is reserved: a
// gateway only tells what it knows.
var reserveScript = redis.NewScript(prelude + `
local tokens, money, candidate = tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local width = 11
local function arg(i, k) return ARGV[5 + (i - 1) * width + k] end
for i = 1, #KEYS do
  if now < tonumber(arg(i, 1)) or now >= tonumber(arg(i, 2)) then return id .. ' window/' .. text(now) end
end
local states, lt, lm, full = {}, {}, {}, 0
for i = 1, #KEYS do
  local h = redis.pcall('HMGET', KEYS[i], 'e', 'n', 't', 'm', 'st', 'sm', 'ot', 'om')
  if h.err then return id .. ' foreign' end
  local s = {e = h[1] or candidate, n = tonumber(h[2] or 0), t = tonumber(h[3] or 0), m = tonumber(h[4] or 0), st = tonumber(h[5] or 0), sm = tonumber(h[6] or 0),
    ot = tonumber(h[7] or 0), om = tonumber(h[8] or 0)}
  local seen, seenN, seenT, seenM = arg(i, 6), tonumber(arg(i, 7)), tonumber(arg(i, 8)), tonumber(arg(i, 9))
  if seen ~= '' and (seen ~= s.e or seenN > s.n) then
    if seen == s.e then s.e, s.st, s.sm, s.n = candidate, s.t, s.m, 0 end
    if seenT > s.st then s.t, s.st = bounded(s.t + seenT - s.st), seenT end
    if seenM > s.sm then s.m, s.sm = bounded(s.m + seenM - s.sm), seenM end
  end
  s.t, s.m = bounded(s.t + tonumber(arg(i, 10))), bounded(s.m + tonumber(arg(i, 11)))
  lt[i], lm[i] = tonumber(arg(i, 4)), tonumber(arg(i, 5))
  if full == 0 and (lt[i] > 0 and s.t + tokens > lt[i] or lm[i] > 0 and s.m + money > lm[i]) then full = i end
  states[i] = s
end
for i = 1, #KEYS do
  local s = states[i]
  s.n = s.n + 1
  if full == 0 then s.t, s.m = bounded(s.t + tokens), bounded(s.m + money) end
  redis.call('HSET', KEYS[i], 'e', s.e, 'n', text(s.n), 't', text(s.t), 'm', text(s.m), 'st', text(s.st), 'sm', text(s.sm))
  if full == 0 and (lt[i] > 0 or lm[i] > 0) then
    s.ot, s.om = bounded(s.ot + tokens), bounded(s.om + money)
    redis.call('HSET', KEYS[i], 'r:' .. id, text(tokens) .. ' ' .. text(money), 'ot', text(s.ot), 'om', text(s.om))
  end
  redis.call('PEXPIREAT', KEYS[i], text(tonumber(arg(i, 2)) + tonumber(arg(i, 3))))
end
if full > 0 then add('full/' .. full) else add('taken') end
for i = 1, #KEYS do
  local s = states[i]
  state(s.e, s.n, s.t, s.m, s.ot, s.om)
end
add(text(now))
return table.concat(reply, ' ')
`)

// settleScript puts another amount, ARGV[3] and [4], in the place of a reservation. A key that does
// not have the reservation is not changed: it was settled, lost, or its window is long over, or the
// key holds something else.
var settleScript = redis.NewScript(prelude + `
local tokens, money = tonumber(ARGV[3]), tonumber(ARGV[4])
add('settled')
for i = 1, #KEYS do
  local held = redis.pcall('HGET', KEYS[i], 'r:' .. id)
  local ht, hm = string.match(type(held) == 'string' and held or '', '^(%d+) (%d+)$')
  if ht then
    local h = redis.call('HMGET', KEYS[i], 'e', 'n', 't', 'm', 'ot', 'om')
    local n = tonumber(h[2]) + 1
    local ot, om = bounded(tonumber(h[5] or 0) - tonumber(ht)), bounded(tonumber(h[6] or 0) - tonumber(hm))
    local t, m = bounded(tonumber(h[3]) - tonumber(ht) + tokens), bounded(tonumber(h[4]) - tonumber(hm) + money)
    redis.call('HSET', KEYS[i], 'n', text(n), 't', text(t), 'm', text(m), 'ot', text(ot), 'om', text(om))
    redis.call('HDEL', KEYS[i], 'r:' .. id)
    state(h[1], n, t, m, ot, om)
  else
    add('-')
  end
end
add(text(now))
return table.concat(reply, ' ')
`)

// readScript returns the states of counters.
var readScript = redis.NewScript(prelude + `
add('read')
for i = 1, #KEYS do
  local h = redis.pcall('HMGET', KEYS[i], 'e', 'n', 't', 'm', 'ot', 'om')
  if h.err then return id .. ' foreign' end
  if h[1] then state(h[1], h[2], h[3], h[4], h[5] or 0, h[6] or 0) else add('-') end
end
add(text(now))
return table.concat(reply, ' ')
`)
