package ship

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/telemetry"
)

// inBody are the members that are not repeated as attributes: they may be long.
var inBody = []string{"time", "trace_id", "arguments", "completion", "completion_b64"}

// recordOf is a line as a collector gets it: the line is the body, and each member that is not
// empty an attribute, members of later versions too.
func recordOf(line []byte) telemetry.LogRecord {
	out := telemetry.LogRecord{Body: string(line)}
	if r, err := audit.Decode(line); err == nil {
		out.Time, out.Event, out.TraceID = r.Time, "callgate.audit."+string(r.Event), r.TraceID
		out.Warn = r.Verdict == audit.Refused || r.Event == audit.Ending && r.Outcome != audit.Result && r.Outcome != audit.HandedOver
	}
	in := json.NewDecoder(bytes.NewReader(line))
	in.UseNumber()
	if _, err := in.Token(); err != nil {
		return out
	}
	for in.More() {
		name, err := in.Token()
		member, _ := name.(string)
		var raw json.RawMessage
		if err != nil || in.Decode(&raw) != nil {
			return out
		}
		if slices.Contains(inBody, member) {
			continue
		}
		if value := attributeValue(raw); value != nil {
			out.Attributes = append(out.Attributes, telemetry.LogAttribute{Key: telemetry.RecordKey(member), Value: value})
		}
	}
	return out
}

// attributeValue is the value of a member; nil where it is empty, or of a type that no attribute
// has.
func attributeValue(raw json.RawMessage) any {
	var text string
	var number int64
	var list []string
	switch {
	case json.Unmarshal(raw, &text) == nil:
		if text != "" {
			return text
		}
	case json.Unmarshal(raw, &number) == nil:
		return number
	case json.Unmarshal(raw, &list) == nil && len(list) > 0:
		return list
	}
	return nil
}
