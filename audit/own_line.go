package audit

import (
	"bytes"
	"strconv"
	"time"
)

// decodeOwn is Decode for a line in the form that the log writes, without content and in a fraction of
// the time. It reports whether it has read the line: one that has escapes outside of content, or members
// of a later version, is left to Decode.
func decodeOwn(line []byte) (r Record, ok bool) {
	l := ownLine{rest: line}
	seq := l.number(`{"seq":`)
	r.Time = l.time(`,"time":"`)
	l.text(`,"event":"`, (*string)(&r.Event))
	l.text(`,"mode":"`, (*string)(&r.Mode))
	l.text(`,"call_id":"`, &r.CallID)
	l.text(`,"request_id":"`, &r.RequestID)
	l.text(`,"trace_id":"`, &r.TraceID)
	r.Attempt = int(l.number(`,"attempt":`))
	l.text(`,"principal":"`, &r.Principal)
	l.text(`,"agent":"`, &r.Agent)
	l.text(`,"workspace":"`, &r.Workspace)
	l.text(`,"project":"`, &r.Project)
	l.text(`,"thread":"`, &r.Thread)
	l.text(`,"tool":"`, &r.Tool)
	l.text(`,"tool_version":"`, &r.ToolVersion)
	l.text(`,"verdict":"`, (*string)(&r.Verdict))
	l.text(`,"stage":"`, (*string)(&r.Stage))
	l.text(`,"code":"`, (*string)(&r.Code))
	l.text(`,"outcome":"`, (*string)(&r.Outcome))
	l.text(`,"input_sha256":"`, &r.InputSHA256)
	l.text(`,"arguments_sha256":"`, &r.ArgumentsSHA256)
	l.text(`,"config_digest":"`, &r.ConfigDigest)
	l.text(`,"replica":"`, &r.Replica)
	r.Micros = l.number(`,"micros":`)
	for _, content := range []string{`,"arguments":`, `,"completion":`} {
		if l.has(content) {
			l.skip()
		}
	}
	r.Approvals, r.Spends, r.Rules = l.texts(`,"approval":[`), l.texts(`,"spends":[`), l.texts(`,"rules":[`)
	if l.has(`,"until":"`) {
		r.Until = l.time("")
	}
	l.optional(`,"reason":"`, &r.Reason)
	r.Rows, r.Hooks = l.texts(`,"rows":[`), l.texts(`,"hooks":[`)
	l.optional(`,"limit":"`, &r.Limit)
	l.optional(`,"key_sha256":"`, &r.KeySHA256)
	l.optional(`,"request_sha256":"`, &r.RequestSHA256)
	l.optional(`,"of_principal":"`, &r.OfPrincipal)
	l.optional(`,"ledger":"`, &r.Ledger)
	for _, turn := range []struct {
		before string
		to     *uint64
	}{{`,"turn":`, &r.Turn}, {`,"caller_turn":`, &r.CallerTurn}} {
		if l.has(turn.before) {
			*turn.to = uint64(l.number(""))
		}
	}
	r.Adds, r.Saw, r.Undo = l.texts(`,"adds":[`), l.texts(`,"saw":[`), l.texts(`,"undo":[`)
	var hook AgentHook
	for _, m := range agentHookMembers {
		l.optional(m.before, m.of(&hook))
	}
	if hook != (AgentHook{}) {
		r.AgentHook = &hook
	}
	if l.has(syncedMember) {
		l.number("")
	}
	l.text(`,"prev":"`, &r.Prev)
	l.text(`,"hash":"`, &r.Hash)
	r.Seq = uint64(seq)
	return r, !l.other && string(l.rest) == "}"
}

// ownLine reads the members of a line, each in its place.
type ownLine struct {
	rest  []byte
	other bool // a member was not there, or has escapes
}

// has reports whether a text follows, and reads it.
func (l *ownLine) has(text string) bool {
	if len(l.rest) < len(text) || string(l.rest[:len(text)]) != text {
		return false
	}
	l.rest = l.rest[len(text):]
	return true
}

// until reads what stands between two texts.
func (l *ownLine) until(before string, end byte) (value []byte) {
	i := -1
	if l.has(before) {
		i = bytes.IndexByte(l.rest, end)
	}
	if i < 0 {
		l.other = true
		return nil
	}
	value, l.rest = l.rest[:i], l.rest[i:]
	l.other = l.other || bytes.IndexByte(value, '\\') >= 0
	return value
}

func (l *ownLine) text(before string, to *string) {
	*to = string(l.until(before, '"'))
	l.other = !l.has(`"`) || l.other
}

func (l *ownLine) optional(before string, to *string) {
	if l.has(before) {
		l.text("", to)
	}
}

func (l *ownLine) time(before string) (t time.Time) {
	l.other = t.UnmarshalText(l.until(before, '"')) != nil || !l.has(`"`) || l.other
	return t
}

func (l *ownLine) number(before string) int64 {
	n, err := strconv.ParseInt(string(l.until(before, ',')), 10, 64)
	l.other = l.other || err != nil
	return n
}

func (l *ownLine) texts(before string) (list []string) {
	if !l.has(before) {
		return nil
	}
	for more := true; more && !l.other; more = l.has(",") {
		var text string
		l.text(`"`, &text)
		list = append(list, text)
	}
	l.other = !l.has("]") || l.other
	return list
}

// skip passes over a value of any form, up to the comma behind it.
func (l *ownLine) skip() {
	depth, quoted := 0, false
	for i := 0; i < len(l.rest); i++ {
		switch c := l.rest[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		case c == ',' && depth == 0:
			l.rest = l.rest[i:]
			return
		}
	}
	l.other = true
}
