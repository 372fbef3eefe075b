package oxp

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/callgate/callgate/internal/outbound"
	"github.com/callgate/callgate/internal/refuse"
	"github.com/callgate/callgate/tool"
)

// oxpVersion is the version of the Open eXecution Protocol in requests, and oxpMajor the
// major version that is accepted in responses.
const (
	oxpVersion = "1.0"
	oxpMajor   = "1"
)

// exactID is the id of a tool in exactly one version. Without the version, the server
// would choose it.
var exactID = regexp.MustCompile(`^[A-Za-z0-9_]+\.[A-Za-z0-9_]+@[0-9]+\.[0-9]+\.[0-9]+$`)

const maxEnvelopeBytes = 64 << 10 // of an answer, beside the value

// Client runs tools of OXP servers, with flat bodies and the version in a header.
type Client struct{ out *outbound.Client }

// New returns a client that sends its requests by out.
func New(out *outbound.Client) *Client { return &Client{out} }

// oxpRequest is the body of a call, without its input, which precedes it byte for byte as
// it was validated.
type oxpRequest struct {
	CallID  string      `json:"call_id"`
	ToolID  string      `json:"tool_id"`
	Context *oxpContext `json:"context,omitempty"`
}

type oxpContext struct {
	User string `json:"user_id"`
}

// Run sends a call. It carries the call's id, so that a server which has it already does
// not run it again. If the tool itself says that it failed and may be tried again, the
// next attempt has another id, because the same id would get the same response.
func (o *Client) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	target, err := oxpEndpoint(call.Run.URL, "tools", "call")
	if err != nil {
		return tool.Result{}, refuse.Unavailable("%s: %w", call.Tool, err)
	}
	if !exactID.MatchString(call.Run.Tool) {
		return tool.Result{}, refuse.Unavailable("%s is not pinned to one version: its id must be Toolkit.Tool@x.y.z", call.Tool)
	}
	if call.ID == "" {
		call.ID = rand.Text()
	}
	request := oxpRequest{CallID: call.ID, ToolID: call.Run.Tool}
	if call.User != "" {
		request.Context = &oxpContext{call.User}
	}
	rounds := 1
	var challenges []tool.Challenge
	result, refused := o.out.Run(ctx, call, func() (tool.Result, *outbound.Failure) {
		if rounds > 1 {
			request.CallID = call.ID + "." + strconv.Itoa(rounds)
		}
		answer, f := o.attempt(ctx, call, target, request)
		challenges = answer.challenges
		if answer.failed {
			rounds++
		}
		return answer.result, f
	})
	if refused != nil {
		return tool.Result{Attempts: result.Attempts, Challenges: challenges}, refused
	}
	return result, nil
}

// oxpEndpoint is the URL of a path of a server.
func oxpEndpoint(base string, path ...string) (*url.URL, error) {
	u, err := outbound.ParseURL(base)
	if err != nil {
		return nil, err
	}
	return u.JoinPath(path...), nil
}

// attempt sends a call once and reads the answer.
func (o *Client) attempt(ctx context.Context, call tool.Call, target *url.URL, requested oxpRequest) (oxpAnswer, *outbound.Failure) {
	body, err := outbound.EncodeWith("input", call.Arguments, requested)
	if err != nil {
		return oxpAnswer{}, outbound.UnsentFailure(refuse.Internal("a call cannot be encoded"))
	}
	post := newOXPRequest(ctx, http.MethodPost, target, body)
	if err := o.out.Authorize(post, call.Run.Credential); err != nil {
		return oxpAnswer{}, outbound.CredentialFailure(ctx, call, err)
	}
	response, sent, err := o.out.Send(post, call.Run.Addresses, !refuse.Retryable(call.Effect))
	if err != nil {
		return oxpAnswer{}, outbound.ConnectionFailure(ctx, call, outbound.Origin(target), err, sent)
	}
	defer response.Body.Close()
	bounded, code := call, response.StatusCode
	ran := code/100 == 2
	switch {
	case ran:
		bounded.Run.MaxResultBytes += maxEnvelopeBytes
	case code == http.StatusBadRequest, code == http.StatusUnauthorized, code == http.StatusUnprocessableEntity:
		bounded.Run.MaxResultBytes = maxEnvelopeBytes
	default:
		return oxpAnswer{}, o.out.ResponseFailure(call, response)
	}
	came, refused, err := outbound.ReadResult(response, bounded)
	if code == http.StatusUnauthorized && o.out.Rejected(response.Request, call.Run.Credential) {
		return oxpAnswer{}, outbound.RetryAfterFailure(unaccepted(call), 0)
	}
	if !ran {
		// By its status the server did not run the tool, even if its body cannot be read.
		f, challenges := oxpRefusal(call, target, code, came)
		return oxpAnswer{challenges: challenges}, f
	}
	switch {
	case err != nil:
		return oxpAnswer{}, outbound.ConnectionFailure(ctx, call, outbound.Origin(target), err, true)
	case refused != nil:
		return oxpAnswer{}, outbound.FinalFailure(refused)
	case !came.JSON:
		return oxpAnswer{}, outbound.FinalFailure(refuse.InvalidResult(call, "it did not answer with application/json"))
	case !compatibleVersion(response.Header):
		return oxpAnswer{}, outbound.FinalFailure(refuse.InvalidResult(call, "it answered in another version of the protocol"))
	}
	return readOXPResponse(call, requested.CallID, came.Body)
}

// newOXPRequest returns a request that states the version of the protocol.
func newOXPRequest(ctx context.Context, method string, target *url.URL, body []byte) *http.Request {
	request := outbound.NewRequest(ctx, method, target, body)
	request.Header.Set("OXP-Version", oxpVersion)
	return request
}

// compatibleVersion reports whether a response is in a version that is understood. A
// response without a version is taken to be: older servers state none.
func compatibleVersion(header http.Header) bool {
	values := header.Values("OXP-Version")
	if len(values) == 0 {
		return true
	}
	major, _, _ := strings.Cut(values[0], ".")
	return len(values) == 1 && major == oxpMajor
}
