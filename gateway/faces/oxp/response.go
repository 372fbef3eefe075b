package oxp

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/wrapper"
)

const contentJSON = "application/json; charset=utf-8"

// members are those of an object that is written.
type members map[string]json.RawMessage

// set adds a member, which always encodes.
func (m members) set(name string, value any) {
	m[name], _ = wrapper.Marshal(value)
}

// write writes a value as JSON in which nothing hides.
func (f *Face) write(c *gin.Context, status int, value any) {
	body, err := wrapper.Marshal(value)
	if err != nil {
		f.options.Log.Error("an OXP answer could not be encoded", "cause", err.Error())
		status, body = http.StatusInternalServerError, []byte(`{"message":"Callgate failed."}`)
	}
	c.Header(headerVersion, Version)
	c.Data(status, contentJSON, append(body, '\n'))
}

// refuse answers what was refused before it was a call.
func (f *Face) refuse(c *gin.Context, refused *refusal.Error) {
	server.LogRefusal(c, refused)
	server.RefusalHeaders(c, refused)
	raw, err := json.Marshal(refused)
	var fields members
	if err != nil || json.Unmarshal(raw, &fields) != nil {
		fields = members{"message": json.RawMessage(`"Callgate failed."`)} // a refusal always encodes: it holds text and numbers
	}
	f.writeError(c, refused.Code, refused.Stage, fields)
	c.Abort()
}

// writeError answers with an error of the protocol's for which nothing was run.
func (f *Face) writeError(c *gin.Context, code refusal.Code, stage refusal.Stage, fields members) {
	status := statusOf(code, stage)
	if status == http.StatusUnprocessableEntity {
		if parameters := parameterErrors(fields); len(parameters) > 0 {
			fields.set("parameter_errors", parameters)
		}
	}
	f.write(c, status, fields)
}

// statusOf is the class of an error for which nothing was run. The protocol knows 400 and
// 422; a request outside the protocol, or without a valid credential, has the status of
// HTTP.
func statusOf(code refusal.Code, stage refusal.Stage) int {
	switch code {
	case refusal.Unauthenticated, refusal.NotFound, refusal.MethodNotAllowed, refusal.CallerRateLimited, refusal.Overloaded:
		return code.Status()
	case refusal.UnknownTool:
		return http.StatusBadRequest
	}
	if stage == refusal.Schema && code.Status() == http.StatusUnprocessableEntity { // the arguments are at fault
		return http.StatusUnprocessableEntity
	}
	return http.StatusBadRequest
}

// parameterErrors maps each invalid argument to its faults. A lone violation has the message of the
// refusal.
func parameterErrors(fields members) map[string]string {
	var violations []struct{ Path, Message string }
	if json.Unmarshal(fields["violations"], &violations) != nil {
		return nil
	}
	if len(violations) == 1 && json.Unmarshal(fields["message"], &violations[0].Message) != nil {
		return nil
	}
	all := map[string]string{}
	for _, v := range violations {
		rest, inside := strings.CutPrefix(v.Path, "/tool/arguments/")
		if !inside {
			continue
		}
		name, _, _ := strings.Cut(rest, "/")
		name = refusal.UnescapePointer(name)
		if all[name] != "" {
			all[name] += " "
		}
		all[name] += v.Message
	}
	return all
}

// wasExecuted reports whether an error is one of a tool that was called, or may have
// been: from its dispatch on a call has no other.
func wasExecuted(code refusal.Code, stage refusal.Stage) bool {
	switch code {
	case refusal.StoreUnavailable, refusal.IdempotencyConflict, refusal.CredentialUnavailable, refusal.CredentialExpired:
		return false
	}
	return stage == refusal.Execute || stage == refusal.Wrap
}

// success and failure are the two answers of a tool that was called. The protocol
// closes them.
type success struct {
	CallID   string          `json:"call_id"`
	Duration *float64        `json:"duration,omitempty"` // in milliseconds
	Success  bool            `json:"success"`
	Value    json.RawMessage `json:"value"`
}

type failure struct {
	CallID   string   `json:"call_id"`
	Duration *float64 `json:"duration,omitempty"`
	Success  bool     `json:"success"`
	Error    members  `json:"error"`
}

// writeOutcome answers with the outcome of a call.
func (f *Face) writeOutcome(c *gin.Context, id string, o calls.Outcome, took time.Duration) {
	own := id == ""
	if own {
		id = o.CallID
	}
	var duration *float64
	if ms := float64(took.Microseconds()) / 1000; !o.Replayed {
		duration = &ms
	}
	if o.Pending {
		f.write(c, http.StatusOK, failure{CallID: id, Duration: duration, Error: pendingError(own)})
		return
	}
	failed := o.Value.Refusal
	if failed == nil {
		value, err := toolValue(o)
		if err != nil {
			f.refuse(c, refusal.From(refusal.Wrap, err))
			return
		}
		f.write(c, http.StatusOK, success{CallID: id, Duration: duration, Success: true, Value: value})
		return
	}
	fields, err := membersOf(failed)
	if err != nil {
		f.refuse(c, refusal.From(refusal.Wrap, err))
		return
	}
	switch challenges := f.challenges(o); {
	case len(challenges) > 0:
		fields.set("missing_requirements", map[string][]challenge{"authorization": challenges})
		f.write(c, http.StatusBadRequest, fields)
	case wasExecuted(failed.Code, failed.Stage):
		// The same call_id gets the outcome of the call that runs.
		again := failed.RetryAfterMS != 0 || failed.Code == refusal.CallInProgress
		fields.set("can_retry", again)
		fields.set("retryable", again)
		f.write(c, http.StatusOK, failure{CallID: id, Duration: duration, Error: fields})
	default:
		f.writeError(c, failed.Code, failed.Stage, fields)
	}
}

// toolValue is the tool's own value.
func toolValue(o calls.Outcome) (json.RawMessage, error) {
	if !o.Wrapped {
		return o.Value.Output, nil
	}
	var output members
	err := json.Unmarshal(o.Value.Output, &output)
	return output["value"], err
}

// membersOf are the members of a refusal, as a model reads them.
func membersOf(refused *refusal.Error) (fields members, err error) {
	raw, err := wrapper.Marshal(refused)
	if err != nil {
		return nil, err
	}
	err = json.Unmarshal(raw, &fields)
	return fields, err
}

// pendingError is the error of a call whose tool will answer later. A client that sent its
// own id repeats the request. A client that sent none must add our id to the request,
// because the same request without it would be another call.
func pendingError(own bool) members {
	message := "The tool has the call and has not answered yet. Send the same call with the same call_id again later, and you are told what became of it."
	if own {
		message = "The tool has the call and has not answered yet. Do not send it again as it was. With this call_id in it, it is not run again, and you are told what became of it."
	}
	m := members{}
	m.set("code", refusal.CallInProgress)
	m.set("stage", refusal.Execute)
	m.set("message", message)
	m.set("can_retry", !own)
	if !own {
		m.set("retry_after_ms", time.Second.Milliseconds())
	}
	return m
}
