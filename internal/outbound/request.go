package outbound

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/callgate/callgate/internal/refuse"
	"github.com/callgate/callgate/tool"
)

// ParseURL parses the URL of a server: absolute, of http or https, without user info.
func ParseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
		return nil, refuse.Reason("its URL is not an absolute http or https URL without user info")
	}
	return u, nil
}

// NewRequest returns a request that asks for JSON, with the headers that all requests
// have. A body that is not nil is sent as JSON. The target is not changed.
func NewRequest(ctx context.Context, method string, target *url.URL, body []byte) *http.Request {
	header := http.Header{"Accept": {"application/json"}, "Accept-Encoding": {"identity"}, "User-Agent": {"callgate"}}
	if body != nil {
		header["Content-Type"] = []string{"application/json"}
	}
	return RequestWith(ctx, method, target, header, body)
}

// RequestWith returns a request with a header of its own, which it keeps, and a body, which
// may be nil.
func RequestWith(ctx context.Context, method string, target *url.URL, header http.Header, body []byte) *http.Request {
	if target.Path != "" && target.Path[0] != '/' { // as (*url.URL).JoinPath leaves it
		rooted := *target
		if rooted.Path = "/" + target.Path; target.RawPath != "" {
			rooted.RawPath = "/" + target.RawPath
		}
		target = &rooted
	}
	request := (&http.Request{
		Method: method, URL: target, Host: strings.TrimSuffix(target.Host, ":"), Header: header, Proto: "HTTP/1.1", ProtoMajor: 1,
		ProtoMinor: 1,
	}).WithContext(ctx)
	if body != nil {
		SetBody(request, body)
	}
	return request
}

// EncodeWith encodes a struct as an object that begins with one more member. The value of
// that member is inserted as it is: an encoder would rewrite it.
func EncodeWith(member string, value []byte, rest any) ([]byte, error) {
	var encoded bytes.Buffer
	e := json.NewEncoder(&encoded)
	e.SetEscapeHTML(false)
	if err := e.Encode(rest); err != nil {
		return nil, err
	}
	body := append([]byte(`{"`+member+`":`), value...)
	return append(append(body, ','), bytes.TrimSpace(encoded.Bytes()[1:])...), nil
}

// FetchJSON sends a request for JSON of at most limit bytes with a credential, and returns the body
// and the header of the response. The error is for the operator; a response that cannot be used is
// a *tool.InvalidListError. A token that is not accepted is fetched anew once.
func (o *Client) FetchJSON(request *http.Request, c *tool.Credential, addresses []string, limit int64) ([]byte, http.Header, error) {
	response, err := o.sendAuthorized(request, c, addresses)
	if err == nil && response.StatusCode == http.StatusUnauthorized && o.Rejected(response.Request, c) {
		_ = response.Body.Close()
		response, err = o.sendAuthorized(request, c, addresses)
	}
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, nil, fmt.Errorf("it answers with HTTP status %d; expected 200", response.StatusCode)
	}
	result, refused, err := ReadResult(response, tool.Call{Tool: "it", Run: tool.Run{MaxResultBytes: limit}})
	switch {
	case err != nil:
		return nil, nil, refuse.Reason(DescribeError(err))
	case refused != nil:
		return nil, nil, &tool.InvalidListError{Err: refused.Cause}
	case !result.JSON:
		return nil, nil, &tool.InvalidListError{Err: refuse.Reason("it does not answer with application/json")}
	}
	return result.Body, response.Header, nil
}

// sendAuthorized sends a copy of a request without a body, which has the credential. Its error is
// for the operator.
func (o *Client) sendAuthorized(request *http.Request, c *tool.Credential, addresses []string) (*http.Response, error) {
	request = request.Clone(request.Context())
	if err := o.Authorize(request, c); err != nil {
		return nil, err
	}
	response, _, err := o.Send(request, addresses, false)
	if err != nil {
		return nil, refuse.Reason(DescribeError(err))
	}
	return response, nil
}
