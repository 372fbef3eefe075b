package starter

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"

	"github.com/callgate/callgate/configs/toolimport"
	"github.com/callgate/callgate/internal/netx"
	"github.com/callgate/callgate/upstream"
)

// FromOpenAPI are the operations of an OpenAPI document. A server of this machine may be connected
// to, since the document names it.
func FromOpenAPI(name string, data []byte, o toolimport.OpenAPIOptions) (Tools, error) {
	imported, err := toolimport.OpenAPI(name, data, o)
	if err != nil {
		return Tools{}, err
	}
	if own := ownAddresses(imported.Server); len(o.Addresses) == 0 && own != nil {
		o.Addresses = own
		if imported, err = toolimport.OpenAPI(name, data, o); err != nil {
			return Tools{}, err
		}
	}
	return fromImport(name, imported)
}

// FromRequest are the tools of a request to a model: of OpenAI's chat completions or Responses, or
// of Anthropic Messages. The application that sends it runs them.
func FromRequest(name string, data []byte) (Tools, error) {
	protocol, read := upstream.ChatWire, toolimport.OpenAI
	switch first := firstTool(data); {
	case first["input_schema"] != nil || datedType.Match(first["type"]):
		protocol, read = upstream.MessagesWire, toolimport.Anthropic
	case first["type"] != nil && first["function"] == nil && first["custom"] == nil:
		protocol, read = upstream.ResponsesWire, toolimport.Responses
	}
	imported, err := read(name, data)
	if err != nil {
		return Tools{}, err
	}
	t, err := fromImport(name, imported)
	t.Client, t.Protocol = true, protocol
	return t, err
}

// datedType is the type of a tool that Anthropic defines, such as bash_20250124.
var datedType = regexp.MustCompile(`_[0-9]{8}"$`)

// firstTool is the first tool of a request, or of a list; nil where there is none. It only chooses
// the reader, which judges the text.
func firstTool(data []byte) map[string]json.RawMessage {
	var request struct {
		Tools []map[string]json.RawMessage `json:"tools"`
	}
	if json.Unmarshal(data, &request) != nil {
		_ = json.Unmarshal(data, &request.Tools) // no list is none
	}
	if len(request.Tools) == 0 {
		return nil
	}
	return request.Tools[0]
}

func fromImport(name string, imported *toolimport.Result) (Tools, error) {
	t := Tools{File: imported.YAML, Names: imported.Names, LeftOut: len(imported.Refused)}
	for _, f := range imported.Changed {
		t.Notes = append(t.Notes, "changed: "+f.Error())
	}
	for _, f := range imported.Refused {
		t.Notes = append(t.Notes, "left out: "+f.Error())
	}
	if len(t.Names) == 0 {
		return t, fmt.Errorf("%s has no tool that can be judged strictly", name)
	}
	return t, nil
}

// ownAddresses are the addresses of a URL of this machine; nil for any other, where the default
// holds: public addresses.
func ownAddresses(base string) []string {
	u, err := url.Parse(base)
	if err != nil || !netx.IsLoopbackHost(u.Hostname()) {
		return nil
	}
	return []string{"127.0.0.0/8", "::1/128"}
}
