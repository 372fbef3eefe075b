package admin

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/wrapper"
)

// testCase writes the decision of a call as a test of a policy, in YAML; empty where a policy
// has no part in the decision. Where the log keeps no arguments, the test is about every call of
// the tool, as the policy in force decides it.
func testCase(d *audit.Record, explained *Explained) (string, error) {
	if d.Event != audit.Decision || d.Tool == "" || d.Agent == "" {
		return "", nil
	}
	expect, note := expectation(d), ""
	switch {
	case expect == "":
		return "", nil
	case d.Arguments == nil && explained == nil:
		return "", nil
	case d.Arguments == nil:
		if expect = reachExpected[explained.Reach]; expect == "" {
			return "", nil
		}
		note = "The audit log keeps no arguments of this call: this is about every call of the tool, by the policy in force."
	case bytes.Contains(d.Arguments, []byte(`"[redacted]"`)):
		note = "Secret arguments are written as the audit log has them."
	}
	var b strings.Builder
	b.WriteString("tests:\n")
	if note != "" {
		fmt.Fprintf(&b, "  # %s\n", note)
	}
	fields := []struct{ name, value string }{
		{"- name", fmt.Sprintf("%s of %s", d.CallID, d.Time.UTC().Format("2006-01-02 15:04:05"))},
		{"  agent", d.Agent}, {"  project", d.Workspace + "/" + d.Project}, {"  tool", d.Tool},
	}
	for _, f := range fields {
		quoted, err := inYAML(f.value)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "  %s: %s\n", f.name, quoted)
	}
	if d.Arguments != nil {
		arguments, err := inYAML(d.Arguments)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "    arguments: %s\n", arguments)
	}
	fmt.Fprintf(&b, "    expect: %s\n# end\n", expect)
	return b.String(), nil
}

// reachExpected are the words of a test without arguments, by the policy's.
var reachExpected = map[string]string{
	policy.Never.String(): "never", policy.OnConditions.String(): "conditions", policy.Asks.String(): "asks",
	policy.Always.String(): "always",
}

// expectation is what a test of the decision expects, as policy/lab reads it; empty where
// the decision is not one that a test judges.
func expectation(d *audit.Record) string {
	switch {
	case d.ToolVersion == "": // the tool is not known
		return ""
	case len(d.Rules) > 0: // it was asked for, whether people had said yes or not
		var rules []string
		for _, text := range d.Rules {
			rule, _, _, ok := audit.ReadRuleVotes(text)
			if !ok {
				return ""
			}
			rules = append(rules, rule)
		}
		return "ask:" + strings.Join(rules, ",")
	case d.Verdict == audit.ToolCall:
		return "allow"
	case d.Verdict != audit.Refused || d.Code == refusal.ToolQuarantined || d.Code == refusal.ToolStarting || d.Code == refusal.Stopped:
		return ""
	case d.Code == refusal.PermissionDenied && d.Stage == refusal.Permission:
		return "deny"
	case d.Stage == refusal.Schema, d.Stage == refusal.Permission, d.Stage == refusal.Project:
		return string(d.Code)
	}
	return ""
}

// inYAML writes a value as one line of JSON that is YAML too, in which nothing hides: two
// escapes of one character, which JSON has beyond U+FFFF, are one in YAML.
func inYAML(v any) ([]byte, error) {
	line, err := wrapper.Marshal(v)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(line))
	for i := 0; i < len(line); {
		switch high, isEscape := escapeAt(line, i); {
		case isEscape && utf16.IsSurrogate(high):
			low, _ := escapeAt(line, i+escapeLength)
			out = fmt.Appendf(out, `\U%08X`, utf16.DecodeRune(high, low))
			i += 2 * escapeLength
		case line[i] == '\\' && i+1 < len(line):
			out = append(out, line[i], line[i+1])
			i += 2
		default:
			out = append(out, line[i])
			i++
		}
	}
	return out, nil
}

const escapeLength = len(`\u0000`)

// escapeAt reads an escape of a UTF-16 code unit.
func escapeAt(line []byte, i int) (unit rune, ok bool) {
	if i+escapeLength > len(line) || line[i] != '\\' || line[i+1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(line[i+2:i+escapeLength]), 16, 16)
	return rune(n), err == nil
}
