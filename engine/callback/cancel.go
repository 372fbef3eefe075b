package callback

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/callgate/callgate/engine/outbound"
	"github.com/callgate/callgate/tool"
)

// Cancel notifies the server of a call, once, that its answer is no longer needed, and
// ignores the response. Servers of other calls in the same thread are not notified.
func (c *Client) Cancel(ctx context.Context, call tool.Call) {
	at, err := c.notificationURL(call, "/cancel_tool_call")
	if err != nil {
		return
	}
	body, err := json.Marshal(map[string]string{"thread_id": call.Thread, "tool_call_id": call.ID})
	if err != nil {
		return
	}
	request := outbound.NewRequest(ctx, http.MethodPost, at, body)
	if err := c.out.Authorize(request, call.Run.Credential); err != nil {
		return
	}
	if response, _, err := c.out.Send(request, call.Run.Addresses, true); err == nil {
		_ = response.Body.Close() // its content does not matter
	}
}

// notificationURL is the URL of a notification: below the server, or, for a tool without
// a server, beside its endpoint.
func (c *Client) notificationURL(call tool.Call, path string) (*url.URL, error) {
	base := ""
	if call.Run.Server != "" && c.base != nil {
		base = c.base(call.Run.Server)
	}
	if base == "" {
		base = call.Run.URL
	}
	u, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	if base == call.Run.URL {
		u.Path = u.Path[:strings.LastIndexByte("/"+u.Path, '/')]
	}
	u.Path, u.RawPath, u.RawQuery, u.Fragment = strings.TrimSuffix(u.Path, "/")+path, "", "", ""
	return u, nil
}
