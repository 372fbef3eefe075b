package audit

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strconv"
	"unicode/utf8"
)

// appendRecord appends the members that the caller owns, from `"time"` on, as they
// stand between seq and prev: ASCII only, without a line end, and without the bytes
// `,"hash"`, which therefore occur once in a line. The members stand in the order of
// Record.
func appendRecord(dst []byte, r *Record, content Content) ([]byte, error) {
	if err := r.validate(); err != nil {
		return dst, err
	}
	dst, err := r.Time.UTC().AppendText(append(dst, `"time":"`...))
	if err != nil {
		return dst, errNotJSON
	}
	dst = appendMember(dst, `","event":"`, string(r.Event))
	dst = appendMember(dst, `","mode":"`, string(r.Mode))
	dst = appendMember(dst, `","call_id":"`, r.CallID)
	dst = appendMember(dst, `","request_id":"`, r.RequestID)
	dst = appendMember(dst, `","trace_id":"`, r.TraceID)
	dst = strconv.AppendInt(append(dst, `","attempt":`...), int64(r.Attempt), 10)
	dst = appendMember(dst, `,"principal":"`, r.Principal)
	dst = appendMember(dst, `","agent":"`, r.Agent)
	dst = appendMember(dst, `","workspace":"`, r.Workspace)
	dst = appendMember(dst, `","project":"`, r.Project)
	dst = appendMember(dst, `","thread":"`, r.Thread)
	dst = appendMember(dst, `","tool":"`, r.Tool)
	dst = appendMember(dst, `","tool_version":"`, r.ToolVersion)
	dst = appendMember(dst, `","verdict":"`, string(r.Verdict))
	dst = appendMember(dst, `","stage":"`, string(r.Stage))
	dst = appendMember(dst, `","code":"`, string(r.Code))
	dst = appendMember(dst, `","outcome":"`, string(r.Outcome))
	dst = appendMember(dst, `","input_sha256":"`, r.InputSHA256)
	dst = appendMember(dst, `","arguments_sha256":"`, r.ArgumentsSHA256)
	dst = appendMember(dst, `","config_digest":"`, r.ConfigDigest)
	dst = appendMember(dst, `","replica":"`, r.Replica)
	dst = strconv.AppendInt(append(dst, `","micros":`...), r.Micros, 10)
	return appendContent(dst, r, content)
}

// errNotJSON does not say more, because that may quote the arguments.
var errNotJSON = errors.New("the record cannot be written as JSON")

func appendContent(dst []byte, r *Record, content Content) ([]byte, error) {
	if len(r.Arguments) > 0 && (content == Arguments || content == Completion) {
		var compact bytes.Buffer
		if json.Compact(&compact, r.Arguments) != nil {
			return dst, errNotJSON
		}
		compacted := bytes.ReplaceAll(compact.Bytes(), []byte(`,"hash"`), []byte(`,"\u0068ash"`))
		dst = appendASCII(append(dst, `,"arguments":`...), compacted, false)
	}
	completion := r.Completion
	if content != Completion {
		completion = ""
	}
	valid := utf8.ValidString(completion)
	if completion != "" && valid {
		dst = append(appendMember(dst, `,"completion":"`, completion), '"')
	}
	dst, err := appendApproval(dst, r)
	if err == nil && !valid {
		dst = base64.StdEncoding.AppendEncode(append(dst, `,"completion_b64":"`...), []byte(completion))
		dst = append(dst, '"')
	}
	return dst, err
}

// appendApproval appends the members of approvals, of the policy rows, of hooks, of limits, of keys, of stops, of threads and of agents'
// hooks.
func appendApproval(dst []byte, r *Record) ([]byte, error) {
	dst = appendStrings(dst, `,"approval":[`, r.Approvals)
	dst = appendStrings(dst, `,"spends":[`, r.Spends)
	dst = appendStrings(dst, `,"rules":[`, r.Rules)
	if !r.Until.IsZero() {
		var err error
		if dst, err = r.Until.UTC().AppendText(append(dst, `,"until":"`...)); err != nil {
			return dst, errNotJSON
		}
		dst = append(dst, '"')
	}
	if r.Reason != "" {
		dst = append(appendMember(dst, `,"reason":"`, r.Reason), '"')
	}
	dst = appendStrings(dst, `,"rows":[`, r.Rows)
	dst = appendStrings(dst, `,"hooks":[`, r.Hooks)
	if r.Limit != "" {
		dst = append(appendMember(dst, `,"limit":"`, r.Limit), '"')
	}
	if r.KeySHA256 != "" {
		dst = append(appendMember(dst, `,"key_sha256":"`, r.KeySHA256), '"')
	}
	if r.RequestSHA256 != "" {
		dst = append(appendMember(dst, `,"request_sha256":"`, r.RequestSHA256), '"')
	}
	if r.OfPrincipal != "" {
		dst = append(appendMember(dst, `,"of_principal":"`, r.OfPrincipal), '"')
	}
	if r.Ledger != "" {
		dst = append(appendMember(dst, `,"ledger":"`, r.Ledger), '"')
	}
	if r.Turn > 0 {
		dst = strconv.AppendUint(append(dst, `,"turn":`...), r.Turn, 10)
	}
	if r.CallerTurn > 0 {
		dst = strconv.AppendUint(append(dst, `,"caller_turn":`...), r.CallerTurn, 10)
	}
	dst = appendStrings(dst, `,"adds":[`, r.Adds)
	dst = appendStrings(dst, `,"saw":[`, r.Saw)
	dst = appendStrings(dst, `,"undo":[`, r.Undo)
	if r.AgentHook != nil {
		for _, m := range agentHookMembers {
			if value := *m.of(r.AgentHook); value != "" {
				dst = append(appendMember(dst, m.before, value), '"')
			}
		}
	}
	return dst, nil
}

// appendStrings appends an array, or nothing where it has no element.
func appendStrings(dst []byte, before string, values []string) []byte {
	if len(values) == 0 {
		return dst
	}
	dst = append(dst, before...)
	for i, value := range values {
		if i > 0 {
			dst = append(dst, ',')
		}
		if value == "hash" && i > 0 {
			dst = append(dst, `"\u0068ash"`...) // as in arguments
			continue
		}
		dst = append(appendMember(dst, `"`, value), '"')
	}
	return append(dst, ']')
}

// appendMember appends what precedes a string, and the string itself without the quote
// that ends it.
func appendMember(dst []byte, before, value string) []byte {
	return appendASCII(append(dst, before...), value, true)
}

// Escaped returns a text as it stands in a string of a line, without the quotes: what a
// reader can look for in the bytes of the log.
func Escaped(text string) string { return string(appendASCII(nil, text, true)) }

// appendASCII appends every byte outside printable ASCII as an escape, so that no
// control, invisible or look-alike character reaches a terminal. Bytes that are not
// UTF-8 become U+FFFD. With quoted, text is the content of a string, in which quotes,
// backslashes and control characters are escaped, too. Otherwise it is JSON, in which
// other bytes than printable ASCII stand in strings alone.
func appendASCII[T string | []byte](dst []byte, text T, quoted bool) []byte {
	start := 0
	for i := 0; i < len(text); {
		c := text[i]
		if c >= ' ' && c <= '~' && (!quoted || c != '"' && c != '\\') {
			i++
			continue
		}
		dst = append(dst, text[start:i]...)
		size := 1
		if short := shortEscape(c); short != 0 {
			dst = append(dst, '\\', short)
		} else {
			var r rune
			r, size = utf8.DecodeRuneInString(string(text[i:min(i+utf8.UTFMax, len(text))]))
			dst = appendEscape(dst, r)
		}
		i += size
		start = i
	}
	return append(dst, text[start:]...)
}

// shortEscape returns the letter of the escapes of two bytes; 0 where there is none.
func shortEscape(c byte) byte {
	switch c {
	case '"', '\\':
		return c
	case '\b':
		return 'b'
	case '\f':
		return 'f'
	case '\n':
		return 'n'
	case '\r':
		return 'r'
	case '\t':
		return 't'
	}
	return 0
}

// appendEscape appends a character as \u escapes: two where it is beyond 16 bits.
func appendEscape(dst []byte, r rune) []byte {
	if r > 0xffff {
		r -= 0x10000
		dst = appendEscape(dst, 0xd800+r>>10)
		r = 0xdc00 + r&0x3ff
	}
	digits := strconv.AppendUint(append(dst, `\u`...), uint64(r)|0x10000, 16)
	return append(digits[:len(dst)+2], digits[len(dst)+3:]...)
}
