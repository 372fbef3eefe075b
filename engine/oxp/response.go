package oxp

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/callgate/callgate/internal/outbound"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/internal/refuse"
	"github.com/callgate/callgate/internal/weburl"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

const (
	maxOXPDepth       = 500 // as deep as a result may nest
	maxChallenges     = 8
	maxChallengeBytes = 2 << 10 // of an address
	maxChallengeID    = 128
	maxParameters     = 16
	maxParameterText  = 2 << 10   // of a server's messages about all parameters
	maxRetryHint      = time.Hour // longer delays are not passed on
)

// readOXPResponse reads the response of a tool that ran: a closed object that answers
// this very call, and is either a success or a failure.
func readOXPResponse(call tool.Call, id string, body []byte) (oxpAnswer, *outbound.Failure) {
	wrong := func(what string) (oxpAnswer, *outbound.Failure) {
		return oxpAnswer{}, outbound.FinalFailure(refuse.InvalidResult(call, what))
	}
	value, err := parser.ReadValue(body, maxOXPDepth)
	if err != nil {
		return wrong("its answer is not strict JSON")
	}
	object, ok := value.(map[string]any)
	if !ok {
		return wrong("its answer is no object")
	}
	dropNulls(object)
	for name := range object {
		if !slices.Contains([]string{"call_id", "success", "duration", "value", "error"}, name) {
			return wrong("its answer has a member that the protocol does not know")
		}
	}
	if _, number := object["duration"].(json.Number); object["duration"] != nil && !number {
		return wrong("the duration of its answer is no number")
	}
	success, ok := object["success"].(bool)
	if !ok {
		return wrong("its answer does not say whether it is a success")
	}
	if answered, ok := object["call_id"].(string); !ok || answered != id {
		return wrong("its answer is not to this call")
	}
	_, hasValue := object["value"]
	stated, hasError := object["error"]
	switch {
	case success && hasError:
		return wrong("its answer is a success with an error")
	case !success && hasValue:
		return wrong("its answer is a failure with a value")
	case !success:
		f, ok := toolError(call, stated)
		if !ok {
			return wrong("the error of its answer is not one of the protocol")
		}
		return oxpAnswer{failed: true}, f
	}
	raw := json.RawMessage("null") // also where it is absent
	if hasValue {
		members, err := rawjson.ReadMap(body, rawjson.AnyDepth)
		if err != nil {
			return wrong("its answer is not strict JSON")
		}
		raw = members["value"]
	}
	if int64(len(raw)) > call.Run.MaxResultBytes {
		return oxpAnswer{}, outbound.FinalFailure(refuse.ResultTooLarge(call))
	}
	return oxpAnswer{result: tool.Result{Body: raw, JSON: true}}, nil
}

// dropNulls drops the members of an object that are null: they are absent.
func dropNulls(object map[string]any) {
	maps.DeleteFunc(object, func(_ string, value any) bool { return value == nil })
}

// toolError is the failure of a tool that ran. Its message and additional prompt content
// are for the model, its developer message is for the operator. Its retry delay is
// honored where that does no harm.
func toolError(call tool.Call, value any) (*outbound.Failure, bool) {
	object, ok := value.(map[string]any)
	if !ok {
		return nil, false
	}
	dropNulls(object)
	t := textMembers{object: object}
	message := t.text("message", true)
	developer := t.text("developer_message", false)
	more := t.text("additional_prompt_content", false)
	retry, stated := object["can_retry"].(bool)
	if _, there := object["can_retry"]; there && !stated {
		t.wrong = true
	}
	after, ok := readRetryDelay(object["retry_after_ms"])
	if t.wrong || !ok {
		return nil, false
	}
	words := "The tool ran and failed. It says: " + refuse.Quote(message)
	if more != "" {
		words += " It adds: " + refuse.Quote(more)
	}
	refused := refuse.Failed(words)
	cause := fmt.Errorf("%s ran and says that it failed", call.Tool)
	if developer != "" {
		cause = fmt.Errorf("%w, and to developers %s", cause, refuse.Quote(developer))
	}
	refused = refused.WithCause(cause)
	if !retry || !refuse.Retryable(call.Effect) {
		return outbound.FinalFailure(refused), true
	}
	if after > 0 && after <= maxRetryHint {
		refused.RetryAfterMS = after.Milliseconds()
	}
	return outbound.RetryAfterFailure(refused, after), true
}

// readRetryDelay reads a whole number of milliseconds; 0 if it is absent.
func readRetryDelay(v any) (time.Duration, bool) {
	if v == nil {
		return 0, true
	}
	number, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	ms, err := strconv.ParseInt(number.String(), 10, 64)
	if errors.Is(err, strconv.ErrRange) && ms > 0 || ms > time.Hour.Milliseconds()*24*365 {
		return 24 * 365 * time.Hour, true
	}
	return time.Duration(ms) * time.Millisecond, err == nil && ms >= 0
}

// textMembers reads the strings of an object. One that is wrong makes all wrong.
type textMembers struct {
	object map[string]any
	wrong  bool
}

func (t *textMembers) text(name string, required bool) string {
	v, there := t.object[name]
	if !there && !required || v == nil && !required {
		return ""
	}
	s, ok := v.(string)
	t.wrong = t.wrong || !ok
	return s
}

// serverError is the response of a server that did not run the tool, as far as it is
// passed on.
type serverError struct {
	message, developer, parameters string // between quotes; the last two may be empty
	challenges                     []tool.Challenge
	dropped                        bool // there were challenges that cannot go on
	user                           bool // it needs the user of the call
}

var errNotServerError = errors.New("not an error of the protocol")

// readServerError reads a ServerErrorResponse or a ValidationErrorResponse. Both may have
// other members.
func readServerError(came tool.Result) (serverError, error) {
	value, err := parser.ReadValue(came.Body, maxOXPDepth)
	object, ok := value.(map[string]any)
	if err != nil || !ok || !came.JSON {
		return serverError{}, errNotServerError
	}
	t := textMembers{object: object}
	s := serverError{message: refuse.Quote(t.text("message", true))}
	if d := t.text("developer_message", false); d != "" {
		s.developer = refuse.Quote(d)
	}
	if t.wrong {
		return serverError{}, errNotServerError
	}
	s.parameters = parameterErrors(object["parameter_errors"])
	missing, _ := object["missing_requirements"].(map[string]any)
	s.user, _ = missing["user_id"].(bool)
	list, _ := missing["authorization"].([]any)
	for _, item := range list {
		if c, ok := readChallenge(item); ok && len(s.challenges) < maxChallenges {
			s.challenges = append(s.challenges, c)
		} else {
			s.dropped = true
		}
	}
	return s, nil
}

// parameterErrors lists the server's messages about arguments.
func parameterErrors(v any) string {
	object, _ := v.(map[string]any)
	names := make([]string, 0, len(object))
	for name := range object {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names[:min(len(names), maxParameters)] {
		why, ok := object[name].(string)
		if ok && b.Len() < maxParameterText {
			fmt.Fprintf(&b, " %.200q: %.200q.", name, why)
		}
	}
	return b.String()
}

// readChallenge reads one challenge. Its URL must be safe for a person to open; its
// check URL is compared with the server's later.
func readChallenge(item any) (tool.Challenge, bool) {
	object, _ := item.(map[string]any)
	t := textMembers{object: object}
	c := tool.Challenge{ID: t.text("id", true), URL: t.text("url", true), CheckURL: t.text("check_url", false)}
	if t.wrong || len(c.ID) > maxChallengeID || len(c.URL) > maxChallengeBytes || !weburl.IsPublic(c.URL) {
		return tool.Challenge{}, false
	}
	for name := range object {
		if name != "id" && name != "url" && name != "check_url" {
			return tool.Challenge{}, false
		}
	}
	return c, true
}

// oxpAnswer is the outcome of one attempt.
type oxpAnswer struct {
	result     tool.Result
	challenges []tool.Challenge
	failed     bool // the tool ran, and reports that it failed
}

// oxpRefusal says why the server did not run a call, as far as the response can be read.
func oxpRefusal(call tool.Call, target *url.URL, code int, came tool.Result) (*outbound.Failure, []tool.Challenge) {
	cause := fmt.Errorf("%s answered with HTTP status %d", call.Tool, code)
	if code == http.StatusUnauthorized {
		return outbound.FinalFailure(unaccepted(call)), nil
	}
	value, err := readServerError(came)
	if err != nil {
		return outbound.FinalFailure(refuse.Status(call, code, 0)), nil
	}
	if value.developer != "" {
		cause = fmt.Errorf("%w: it says to developers %s", cause, value.developer)
	}
	var refused *refusal.Error
	switch {
	case code == http.StatusUnprocessableEntity:
		refused = refuse.Failed("The tool's server did not take the arguments, and did not run the tool. It says: " + value.message +
			value.parameters)
	case len(value.challenges) > 0:
		refused = refuse.Failed("The tool's server did not run the tool: a person has to authorize it first. Tell them so; once they have, it can be called again.")
	case value.dropped:
		refused = refuse.Failed("The tool's server did not run the tool: a person has to authorize it first, and it did not say where in a way that can be passed on; continue without it.")
		cause = fmt.Errorf("%w: its challenge has an address that no person should be sent to", cause)
	case value.user:
		refused = refuse.Failed("The tool's server did not run the tool: it must be told for which user the call is, and the request did not say; continue without it.")
	default:
		refused = refuse.Failed("The tool's server did not run the tool. It says: " + value.message)
	}
	for i := range value.challenges {
		if c := &value.challenges[i]; !sameOrigin(target, c.CheckURL) {
			c.CheckURL = ""
		}
	}
	return outbound.FinalFailure(refused.WithCause(cause)), value.challenges
}

// unaccepted refuses a call whose server did not accept the gateway's credential.
func unaccepted(call tool.Call) *refusal.Error {
	return refuse.Failed("The tool's server does not accept the gateway's credential, so it did not run the tool; continue without it.").
		WithCause(fmt.Errorf("%s answered with HTTP status %d", call.Tool, http.StatusUnauthorized))
}

// sameOrigin reports whether an address is on a server, spelled alike.
func sameOrigin(server *url.URL, address string) bool {
	u, err := url.Parse(address)
	return err == nil && len(address) <= maxChallengeBytes && u.Host != "" && outbound.Origin(u) == outbound.Origin(server) && u.User == nil
}
