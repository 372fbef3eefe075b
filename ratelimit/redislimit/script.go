package redislimit

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/callgate/callgate/internal/redisconn"
	"github.com/callgate/callgate/ratelimit/budget"
	"github.com/callgate/callgate/ratelimit/internal/charge"
)

// unitsPerMicrosecond is a rate in units a microsecond. A bucket counts in units, of
// which 3 600 000 000 are a token, and time in whole microseconds: a rate of N/s
// brings 3600 N units each microsecond, N/m 60 N and N/h N. So every number is whole
// and, up to the highest burst, below 2^53, up to which the numbers of Lua are exact.
func unitsPerMicrosecond(r charge.Rate) int64 { return r.PerHour() }

// script runs a list of operations on counters in their order. Redis runs it alone and whole.
//
// A bucket is a string, "at level speed burst": the microsecond of its last update,
// the units that it held then, and its budget. It expires when it is full again, since
// a full bucket equals a missing one. After the budget has changed, a fifth number is
// the microsecond at which it would have been full by the old budget, and it is kept
// until then: else a gateway with the old budget would find no bucket and take it for
// full.
//
// The slots of an agent are a sorted set: the ids of calls, by the microsecond when their
// leases end.
//
// A window of a budget is a hash:
//
//	t, m    tokens and millionths of money that are spent, open reservations included
//	ot, om  those of the open reservations
//	e, n    its history, and how often the hash was changed
//	pe, pn  the history before, and how often it had been changed then
//	run     the run of Redis in which the history began
//	st, sm  as much of t and m as there was then, or was put back since
//	lost    1: a gateway has seen more than there was then
//	r:ID    an open reservation: its tokens, its money, and n
//
// A gateway sends the state of a window that it saw last (e, n, t, m) with each request for it. A history
// begins with the hash, and with another run of Redis, which may hold an old state. So a gateway has seen
// more than Redis has if it knows neither e up to n nor pe up to pn. The largest of what the gateways have
// seen is put back then, once: the first one adds what it has seen, the next ones as much as they have
// seen more. A lost reservation stays charged. So does one of the history before, once a gateway has seen
// more: it may have been settled, and what others had spent then be counted only since the old state has it
// whole. Where nobody has seen more until then, it is settled as if the history had begun without it.
//
// The epoch is a string, "since/run/name": the microsecond at which all buckets were empty, or 0, the
// run of Redis, and what tells it from another one. Where there is none, or one of another run, buckets may be
// lost, and the epoch begins now; with 0 for a gateway that knows of none before, since Redis may be
// new. A gateway that knows another one takes the epoch that it finds if that began later, since another
// gateway has met the same loss; else a new one begins too.
//
// KEYS are the buckets, the windows, and the slots, each once. ARGV[1] is the time
// in microseconds where it is not to be Redis' own, [2] the key of the epoch, which on a cluster has another
// slot of the same node and so cannot be among KEYS, [3] the epoch that the gateway knows ("": none), [4]
// the run of Redis, [5] how many milliseconds counters are kept beyond their time, [6] the id of the request,
// which an epoch or a history that begins has too, [7] how long a slot is leased, in microseconds, [8] and [9]
// the numbers of buckets and windows. For each bucket follow its speed and burst, and for each window nine:
// its bounds and how long it is kept beyond, in milliseconds; what the gateway has seen (an empty history:
// nothing); and what it has granted while Redis was away, which counts if the time is in the window.
// The rest are the operations; P is the place of a key in KEYS:
//
//	take N P… CALLS               a token of each bucket, for so many equal calls
//	hold N P… P SLOTS ID N [TOKENS MONEY (P TOKENS MONEY)…]
//	                              for one call, also a slot (P 0: none) and an amount of each of N windows
//	                              within its bounds (0: none)
//	back N P… P ID                gives back what take or hold took of buckets and slots; comes before those
//	debit P TOKENS                takes as many of a bucket as there are
//	renew P N ID…                 leases slots anew, also those that Redis has lost
//	settle ID TOKENS MONEY N P…   puts another amount in the place of a reservation
//	read P                        changes nothing
//
// The reply is the id, the epoch behind a = where the gateway knows another, and a word for each
// operation. That of take is N, where all N calls were taken, or N/MS/BY, where the first N were and the
// others have to wait so long for their bucket BY, which takes longest. That of hold is 1 or 0/MS/BY too;
// else crowded, without a slot; full/I, where the I-th window has no room; or window, where one of them is
// not of this time. That of read is LEFT/MICROSECONDS, the whole tokens of a bucket and when it is full,
// or the slots that are taken. Else it is ok; and foreign, where a key holds something else: only the
// operations that need that key fail. A settlement that finds no reservation changes nothing: it was
// settled, lost, or its window is long over. For each window follows its state, e/n/t/m/ot/om, or - where
// there is none, and then the time.
//
// Each counter is read once, buckets and windows before the operations, and written once, after them, if it
// was changed, a bucket also if its budget has changed, since until now the old one counted. The
// first write is one that Redis refuses when it is out of memory, or only removes: after a first
// write it would refuse no other.
var script = redisconn.NewScript(`
local call, pcall, format, match = redis.call, redis.pcall, string.format, string.match
local min, max, ceil, floor = math.min, math.max, math.ceil, math.floor
local now = tonumber(ARGV[1])
if not now then
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
end
local known, run, keep, id, lease = ARGV[3], ARGV[4], tonumber(ARGV[5]), ARGV[6], tonumber(ARGV[7])
local unit, most = 3600000000, 1000000000000000
local place = 9
local function text(n) return format('%.0f', n) end
local function bounded(n) return max(0, min(n, most)) end
local function arg()
  place = place + 1
  return ARGV[place]
end
local function number() return tonumber(arg()) end

local epoch = call('GET', ARGV[2])
local since, of = match(epoch or '', '^(%d+)/([^/]*)/')
since = tonumber(since)
if not since or run ~= '' and of ~= run or known ~= '' and epoch ~= known and since <= (tonumber(match(known, '^%d+')) or math.huge) then
  since = (epoch or known ~= '') and now or 0
  epoch = text(since) .. '/' .. run .. '/' .. id
  call('SET', ARGV[2], epoch)
end
since = since > 0 and since

local function bucket(key)
  local s, b = ARGV[place + 1], ARGV[place + 2]
  place = place + 2
  local speed, most, figures = tonumber(s), tonumber(b) * unit, s .. ' ' .. b
  local at, level, till, fresh, stored = now, most, 0, true, false
  local state = pcall('GET', key)
  if state then
    if type(state) ~= 'string' then return nil end
    local had
    at, level, had, till = match(state, '^(%-?%d+) (%d+) (%d+ %d+)( ?%d*)$')
    if not at or till == ' ' then return nil end
    at, level, till, fresh, stored = tonumber(at), tonumber(level), tonumber(till) or 0, had ~= figures, true
    if since and at < since then at, level, stored = since, 0, false end
    local before, full = speed, most
    if fresh then
      s, b = match(had, '^(%d+) (%d+)$')
      before, full = tonumber(s), tonumber(b) * unit
      till = max(till, at + ceil((full - level) / before))
    end
    if now > at then
      level = min(level + (now - at) * before, full)
      at = now
    end
    level = min(level, most)
  elseif since then
    at, level = max(now, since), min(max(now - since, 0) * speed, most)
  end
  return {at = at, level = level, speed = speed, most = most, figures = figures, till = till, stored = stored, changed = fresh and 'by a take'}
end

local function keepBucket(key, b)
  local missing, ms, state = b.most - b.level, keep, b.figures
  if missing > 0 then ms = ms + ceil((b.at - now + ceil(missing / b.speed)) / 1000) + 1 end
  if b.till > now then
    ms = max(ms, keep + ceil((b.till - now) / 1000) + 1)
    state = state .. ' ' .. text(b.till)
  end
  if ms > 0 then
    call('SET', key, format('%.0f %.0f %s', b.at, b.level, state), 'PX', ms)
  else
    call('DEL', key)
  end
end

local function window(key)
  local from, to, stay = number(), number(), number()
  local seen, seenN, seenT, seenM, owedT, owedM = arg(), number(), number(), number(), number(), number()
  local h = pcall('HMGET', key, 'e', 'pe', 'run', 'n', 'pn', 't', 'm', 'st', 'sm', 'ot', 'om', 'lost')
  if h.err then return nil end
  local w = {e = h[1], pe = h[2], stored = h[1] and true, held = {}, settled = {}, ends = to + stay, current = now >= from * 1000 and now < to * 1000}
  for i, name in ipairs({'n', 'pn', 't', 'm', 'st', 'sm', 'ot', 'om', 'lost'}) do w[name] = tonumber(h[i + 3] or 0) end
  if not w.current then return w end
  if not w.e or run ~= '' and h[3] ~= run then
    w.e, w.pe, w.pn, w.st, w.sm, w.lost, w.fresh, w.changed = id, w.e, w.n, w.t, w.m, 0, true, w.stored
  end
  if seen ~= '' and not (seen == w.e and seenN <= w.n or seen == w.pe and seenN <= w.pn) then
    w.lost, w.fresh, w.changed = 1, true, true
    if seenT > w.st then w.t, w.st = bounded(w.t + seenT - w.st), seenT end
    if seenM > w.sm then w.m, w.sm = bounded(w.m + seenM - w.sm), seenM end
  end
  if owedT ~= 0 or owedM ~= 0 then w.t, w.m, w.changed = bounded(w.t + owedT), bounded(w.m + owedM), true end
  return w
end

local function keepWindow(key, w)
  w.n, w.stored = w.n + 1, true
  call('HSET', key, 'n', w.n, 't', w.t, 'm', w.m, 'ot', w.ot, 'om', w.om, unpack(w.held))
  if w.settled[1] then call('HDEL', key, unpack(w.settled)) end
  if w.fresh then
    call('HSET', key, 'e', w.e, 'pe', w.pe or '', 'pn', w.pn, 'run', run, 'st', w.st, 'sm', w.sm, 'lost', w.lost)
    call('PEXPIREAT', key, w.ends)
  end
end

local buckets = tonumber(ARGV[8])
local last = buckets + tonumber(ARGV[9])
local counters = {}
for i = 1, #KEYS do
  counters[i] = i <= buckets and bucket(KEYS[i]) or i > last and {lent = {}, gone = {}} or i > buckets and window(KEYS[i]) or nil
end

local function removeGone(at)
  local s = counters[at]
  if s.gone[1] then pcall('ZREM', KEYS[at], unpack(s.gone)) end
  s.gone = {}
end

-- busy returns how many slots are taken.
local function busy(at)
  local s = counters[at]
  removeGone(at)
  s.held = s.held or pcall('ZCOUNT', KEYS[at], '(' .. text(now), '+inf')
  return type(s.held) == 'number' and s.held
end

local function lend(at, names)
  for i = #names, 1, -1 do
    names[2 * i] = names[i]
    names[2 * i - 1] = now + lease
  end
  call('ZADD', KEYS[at], unpack(names))
  call('PEXPIRE', KEYS[at], ceil(lease / 1000) + keep + 1)
end

-- hold returns why a slot and amounts cannot be taken, or takes them.
local function hold(taken)
  local slots, size, name, n = number(), number(), arg(), number()
  local tokens, money
  if n > 0 then tokens, money = number(), number() end
  local first = place
  place = place + 3 * n
  if taken == 0 then return end
  for i = 1, n do
    local at = first + 3 * i
    local w, t, m = counters[tonumber(ARGV[at - 2])], tonumber(ARGV[at - 1]), tonumber(ARGV[at])
    if not w then return 'foreign' end
    if not w.current then return 'window' end
    if t > 0 and w.t + tokens > t or m > 0 and w.m + money > m then return 'full/' .. i end
  end
  if slots > 0 then
    local held, s = busy(slots), counters[slots]
    if not held then return 'foreign' end
    if held >= size then return 'crowded' end
    s.held = held + 1
    s.lent[#s.lent + 1] = name
  end
  for i = 1, n do
    local at = tonumber(ARGV[first + 3 * i - 2])
    local w = counters[at]
    w.t, w.m, w.ot, w.om, w.changed = bounded(w.t + tokens), bounded(w.m + money), bounded(w.ot + tokens), bounded(w.om + money), true
    w.held[#w.held + 1] = 'r:' .. name
    w.held[#w.held + 1] = format('%.0f %.0f %.0f', tokens, money, w.n + 1)
  end
end

local function take(op)
  local n = number()
  local first = place
  place = place + n
  local wanted = op == 'hold' and 1 or number()
  local taken, word = wanted, nil
  for i = 1, n do
    local b = counters[tonumber(ARGV[first + i])]
    if b then
      taken, b.changed = min(taken, floor(b.level / unit)), b.changed and true
    else
      word, taken = 'foreign', 0
    end
  end
  if op == 'hold' then word = hold(taken) or word end
  if word then return word end
  local ms, by = 0, 0
  for i = 1, n do
    local b = counters[tonumber(ARGV[first + i])]
    b.level, b.changed = b.level - taken * unit, b.changed or taken > 0
    if taken < wanted and b.level < unit then
      local wait = max(1, ceil((b.at - now + ceil((unit - b.level) / b.speed)) / 1000))
      if wait > ms then ms, by = wait, i end
    end
  end
  return taken < wanted and taken .. '/' .. text(ms) .. '/' .. by or taken
end

-- other runs the operations that take nothing.
local function other(op)
  if op == 'settle' then
    local name, tokens, money = 'r:' .. arg(), number(), number()
    for i = 1, number() do
      local at = number()
      local w, held = counters[at], pcall('HGET', KEYS[at], name)
      local ht, hm, n = match(type(held) == 'string' and held or '', '^(%d+) (%d+) (%d+)$')
      if w and w.e and ht and not w.settled[name] then
        w.settled[#w.settled + 1], w.settled[name] = name, true
        w.ot, w.om, w.changed = bounded(w.ot - ht), bounded(w.om - hm), true
        local before = tonumber(n) <= w.pn
        if not before or w.lost == 0 then w.t, w.m = bounded(w.t - ht + tokens), bounded(w.m - hm + money) end
        if before and w.lost == 0 then w.st, w.sm, w.fresh = bounded(w.st - ht + tokens), bounded(w.sm - hm + money), true end
      end
    end
  elseif op == 'back' then
    for i = 1, number() do
      local b = counters[number()]
      if b and b.stored then b.level, b.changed = min(b.level + unit, b.most), true end
    end
    local slots, name = number(), arg()
    if slots > 0 then
      local gone = counters[slots].gone
      gone[#gone + 1] = name
    end
  elseif op == 'debit' then
    local b, tokens = counters[number()], number()
    if not b then return 'foreign' end
    b.level, b.changed = max(0, b.level - tokens * unit), true
  elseif op == 'renew' then
    local at, n = number(), number()
    place = place + n
    if not busy(at) then return 'foreign' end
    lend(at, {unpack(ARGV, place - n + 1, place)})
    counters[at].held = nil
  else
    local at = number()
    local c = counters[at]
    if at > last then return busy(at) or 'foreign' end
    if not c then return 'foreign' end
    if at <= buckets then return text(floor(c.level / unit)) .. '/' .. text(c.at - now + ceil((c.most - c.level) / c.speed)) end
  end
  return 'ok'
end

local reply = {id}
if epoch ~= known then reply[2] = '=' .. epoch end
while ARGV[place + 1] do
  local op = arg()
  reply[#reply + 1] = (op == 'take' or op == 'hold') and take(op) or other(op)
end
for i = 1, last do
  local c = counters[i]
  if c and c.changed == true then
    if i <= buckets then keepBucket(KEYS[i], c) else keepWindow(KEYS[i], c) end
  end
  if i > buckets then
    local state = not c and 'foreign' or '-'
    if c and c.stored then state = table.concat({c.e, text(c.n), text(c.t), text(c.m), text(c.ot), text(c.om)}, '/') end
    reply[#reply + 1] = state
  end
end
for i = last + 1, #KEYS do
  removeGone(i)
  if counters[i].lent[1] then
    lend(i, counters[i].lent)
    call('ZREMRANGEBYSCORE', KEYS[i], '-inf', now)
  end
end
if last > buckets then reply[#reply + 1] = text(now) end
return table.concat(reply, ' ')
`)

var errForeignReply = errors.New("the reply is not one to this request")

// bucketKey is the key of a bucket. All keys of one agent share a hash tag, so that they
// are on one node of a cluster.
func bucketKey(prefix string, k charge.Kind, n charge.Name) string {
	switch k {
	case charge.Agents:
		return prefix + "{a/" + keyPart(n.First) + "}:bucket"
	case charge.AgentTools:
		return prefix + "{a/" + keyPart(n.First) + "}:tool:" + keyPart(n.Second)
	case charge.Tools:
		return prefix + "{t/" + keyPart(n.First) + "}:bucket"
	case charge.Projects:
		return prefix + "{p/" + keyPart(n.First) + "/" + keyPart(n.Second) + "}:bucket"
	case charge.Callers:
		return prefix + "{c/" + keyPart(n.First) + "}:bucket"
	}
	panic(fmt.Sprintf("kind %d", k))
}

func slotsKey(prefix, agent string) string { return prefix + "{a/" + keyPart(agent) + "}:slots" }

// windowKey is the key of the window of a counter that begins at a time. A name that is not the
// operator's stands in it as a digest: a subject may be long, and may hold any byte. All windows are
// on one node of a cluster.
func windowKey(prefix string, c budget.Counter, start time.Time) string {
	sum := sha256.Sum256([]byte(c.Zone + "\x00" + c.Subject))
	return prefix + "{budgets}:" + c.Budget + ":" + string(c.Per) + ":" + string(c.Window) + ":" + strconv.FormatInt(start.Unix(), 10) +
		":" + hex.EncodeToString(sum[:16])
}

// tagOf returns a key up to the end of its hash tag.
func tagOf(key string) string { return key[:strings.LastIndexByte(key, '}')+1] }

// keyPart writes a name within a key. A name that is long, or holds a byte with a
// meaning in keys, is replaced by its digest, which is too long to be a name itself.
func keyPart(s string) string {
	if len(s) > 64 {
		return charge.Digest(s)
	}
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c > '~' || c == '/' || c == '{' || c == '}' {
			return charge.Digest(s)
		}
	}
	return s
}
