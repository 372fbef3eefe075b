package callback

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/callgate/callgate/internal/outbound"
	"github.com/callgate/callgate/internal/refuse"
	"github.com/callgate/callgate/tool"
)

// errResponseURL is why nothing is sent to a URL that a tool states.
const errResponseURL = refuse.Reason("response_url is no http or https URL of the tool's own server, without user info and fragment")

// CheckResponse says why nothing may be sent to a URL that the tool of a call states: it must
// be on the server of the tool, as the operator has stated or accepted it, so that no tool can
// aim the gateway, and its credential, elsewhere.
func (c *Client) CheckResponse(call tool.Call, text string) error {
	_, err := c.responseURL(call, text)
	return err
}

func (c *Client) responseURL(call tool.Call, text string) (*url.URL, error) {
	target, err := outbound.ParseURL(text)
	if err != nil || target.Fragment != "" {
		return nil, errResponseURL
	}
	for _, known := range []string{call.Run.URL, c.serverURL(call.Run.Server)} {
		if server, err := outbound.ParseURL(known); err == nil && outbound.Origin(server) == outbound.Origin(target) {
			return target, nil
		}
	}
	return nil, errResponseURL
}

// Respond sends what a person has chosen to the tool of a call, once. Only status 200 accepts
// it.
func (c *Client) Respond(ctx context.Context, call tool.Call, text string, selected int) error {
	target, err := c.responseURL(call, text)
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{"id": call.ID, "selected": selected})
	if err != nil {
		return err
	}
	request := outbound.NewRequest(ctx, http.MethodPost, target, body)
	if err := c.out.Authorize(request, call.Run.Credential); err != nil {
		return err
	}
	response, _, err := c.out.Send(request, call.Run.Addresses, true)
	if err != nil {
		return err
	}
	_ = response.Body.Close() // which is not read
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("%s answered with HTTP status %d; expected 2xx", call.Tool, response.StatusCode)
	}
	return nil
}
