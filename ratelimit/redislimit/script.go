package redislimit

import (
	"crypto/sha1" // the name that Redis gives a script
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/callgate/callgate/ratelimit/internal/charge"
)

// script is a Lua script, which Redis runs alone and whole.
type script struct{ source, sha string }

func newScript(body string) *script {
	source := prelude + body
	sum := sha1.Sum([]byte(source))
	return &script{source: source, sha: hex.EncodeToString(sum[:])}
}

// unitsPerMicrosecond is a rate in units a microsecond. A bucket counts in units, of
// which 3 600 000 000 are a token, and time in whole microseconds: a rate of N/s
// brings 3600 N units each microsecond, N/m 60 N and N/h N. So every number is whole
// and, up to the highest burst, below 2^53, up to which the numbers of Lua are exact.
func unitsPerMicrosecond(r charge.Rate) int64 { return r.PerHour() }

// A bucket is a string, "at level speed burst": the microsecond of its last update,
// the units that it held then, and its budget. It expires when it is full again, since
// a full bucket equals a missing one. After the budget has changed, a fifth number is
// the microsecond at which it would have been full by the old budget, and it is kept
// until then: else a gateway with the old budget would find no bucket and take it for
// full.
//
// ARGV[1] is the time in microseconds where it is not to be Redis' own, [2]
// when all buckets were empty ("": never), and [3] how many milliseconds they
// are kept beyond their time.
const prelude = `
local call, pcall, format, match = redis.call, redis.pcall, string.format, string.match
local min, max, ceil, floor = math.min, math.max, math.ceil, math.floor
local now = tonumber(ARGV[1])
if not now then
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
end
local since, keep = tonumber(ARGV[2]), tonumber(ARGV[3])
local unit = 3600000000

local function read(key, speed, burst, figures)
  local most = burst * unit
  local state = pcall('GET', key)
  if state then
    if type(state) ~= 'string' then return nil end
    local at, level, had, till = match(state, '^(%-?%d+) (%d+) (%d+ %d+)( ?%d*)$')
    if not at or till == ' ' then return nil end
    at, level, till = tonumber(at), tonumber(level), tonumber(till) or 0
    if since and at < since then at, level = since, 0 end
    local s, b = speed, most
    if had ~= figures then
      s, b = match(had, '^(%d+) (%d+)$')
      s, b = tonumber(s), tonumber(b) * unit
      till = max(till, at + ceil((b - level) / s))
    end
    if now > at then
      level = min(level + (now - at) * s, b)
      at = now
    end
    return at, min(level, most), had ~= figures, till
  end
  if since then
    return max(now, since), min(max(now - since, 0) * speed, most), true, 0
  end
  return now, most, true, 0
end

local function write(key, at, level, speed, burst, figures, till)
  local missing = burst * unit - level
  local ms = keep
  if missing > 0 then
    ms = ms + ceil((at - now + ceil(missing / speed)) / 1000) + 1
  end
  if till > now then
    ms = max(ms, keep + ceil((till - now) / 1000) + 1)
    figures = format('%s %.0f', figures, till)
  end
  if ms > 0 then
    call('SET', key, format('%.0f %.0f %s', at, level, figures), 'PX', format('%.0f', ms))
  else
    call('DEL', key)
  end
end
`

// takeScript decides calls in their order: for each call a token of each of
// its buckets and a slot, all or none. KEYS are the buckets, each once, then the slots.
// ARGV[4] is the id of the request, [5] how long a slot is leased, in microseconds, [6] the
// number of buckets; then speed and burst of each bucket. The rest are the calls: the
// number of buckets, their places in KEYS, and how many equal calls there are; 0 is one
// call with a slot, followed by the place of the slots, how many there are, and its id.
//
// The reply is the id, then a word for each run of equal calls: N, where all N were taken;
// N/MS/BY, where the first N were taken and the others have to wait so long for their
// bucket BY, which takes longest; crowded, without a slot; foreign, where a key holds
// something else. Only the calls that need that key fail.
//
// Each bucket is read once, before the calls, and written once, after them: if a call took
// of it, or if its budget has changed, since until now the old one counted. The first write
// is one that Redis refuses when it is out of memory: after a first write it would refuse
// no other.
var takeScript = newScript(`
local lease, n = tonumber(ARGV[5]), tonumber(ARGV[6])
local buckets = {}
for i = 1, n do
  local s, b = ARGV[5 + 2 * i], ARGV[6 + 2 * i]
  local figures = s .. ' ' .. b
  local speed, burst = tonumber(s), tonumber(b)
  local at, level, fresh, till = read(KEYS[i], speed, burst, figures)
  buckets[i] = at and {at, level, speed, burst, figures, till, fresh}
end

local function slot(key, slots, id)
  local held = pcall('ZCOUNT', key, '(' .. format('%.0f', now), '+inf')
  if type(held) ~= 'number' then return 'foreign' end
  if held >= slots then return 'crowded' end
  call('ZADD', key, format('%.0f', now + lease), id)
  call('ZREMRANGEBYSCORE', key, '-inf', format('%.0f', now))
  call('PEXPIRE', key, format('%.0f', ceil(lease / 1000) + keep + 1))
end

local reply, place = {ARGV[4]}, 7 + 2 * n
while ARGV[place] do
  local charges = tonumber(ARGV[place])
  local calls = tonumber(ARGV[place + charges + 1])
  local wanted = max(calls, 1)
  local taken, word = wanted, nil
  for i = 1, charges do
    local b = buckets[tonumber(ARGV[place + i])]
    if not b then word = 'foreign' break end
    taken = min(taken, floor(b[2] / unit))
  end
  local behind = place + charges + 2
  if calls == 0 then
    if not word and taken > 0 then
      word = slot(KEYS[tonumber(ARGV[behind])], tonumber(ARGV[behind + 1]), ARGV[behind + 2])
    end
    behind = behind + 3
  end
  if not word then
    local ms, by = 0, 0
    for i = 1, charges do
      local b = buckets[tonumber(ARGV[place + i])]
      if taken > 0 then
        b[2] = b[2] - taken * unit
        b[7] = true
      end
      if taken < wanted and b[2] < unit then
        local wait = max(1, ceil((b[1] - now + ceil((unit - b[2]) / b[3])) / 1000))
        if wait > ms then ms, by = wait, i end
      end
    end
    word = taken
    if taken < wanted then word = taken .. '/' .. format('%.0f', ms) .. '/' .. by end
  end
  reply[#reply + 1] = word
  place = behind
end
for i = 1, n do
  local b = buckets[i]
  if b and b[7] then write(KEYS[i], b[1], b[2], b[3], b[4], b[5], b[6]) end
end
return table.concat(reply, ' ')
`)

// refundScript gives back what takeScript granted and the call cannot use. KEYS are as
// in takeScript; ARGV[4] is the id, [5] the number of buckets. A bucket that is gone
// is full: it needs no refund.
var refundScript = newScript(`
local n = tonumber(ARGV[5])
for i = 1, n do
  local state = call('GET', KEYS[i])
  if state then
    local a, l, s, b, till = match(state, '^(%-?%d+) (%d+) (%d+) (%d+)( ?%d*)$')
    if a then
      local level = min(tonumber(l) + unit, tonumber(b) * unit)
      call('SET', KEYS[i], format('%s %.0f %s %s%s', a, level, s, b, till), 'KEEPTTL')
    end
  end
end
if KEYS[n + 1] then call('ZREM', KEYS[n + 1], ARGV[4]) end
return ARGV[4] .. ' given back'
`)

// debitScript takes tokens that were granted while Redis was away, as far as
// there are any. KEYS[1] is the bucket; ARGV[4] the id, [5] and [6] its speed
// and burst, [7] the number of tokens.
var debitScript = newScript(`
local speed, burst, figures = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[5] .. ' ' .. ARGV[6]
local at, level, _, till = read(KEYS[1], speed, burst, figures)
if not at then return redis.error_reply('BADBUCKET of a debit') end
write(KEYS[1], at, max(0, level - tonumber(ARGV[7]) * unit), speed, burst, figures, till)
return ARGV[4] .. ' debited'
`)

// renewScript renews leases. KEYS[1] are an agent's slots; ARGV[4] is the id of the
// request, [5] the length of the lease in microseconds, and the rest the ids of the
// calls. A slot that Redis has lost is leased again, since its call runs.
var renewScript = newScript(`
local lease = tonumber(ARGV[5])
local till = format('%.0f', now + lease)
for i = 6, #ARGV do call('ZADD', KEYS[1], till, ARGV[i]) end
call('PEXPIRE', KEYS[1], format('%.0f', ceil(lease / 1000) + keep + 1))
return ARGV[4] .. ' renewed'
`)

var scripts = []*script{takeScript, refundScript, debitScript, renewScript}

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
