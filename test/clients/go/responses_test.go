package clients_test

import (
	"errors"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
)

// responsesTalk speaks Responses with openai-go.
type responsesTalk struct {
	client openai.Client
	params responses.ResponseNewParams
}

// failure is a response whose state, or whose last event, says that it failed.
type failure struct{ body string }

func (f failure) Error() string { return f.body }

func speakerResponses() speaker {
	return speaker{"openai-go", func(p place, scenario string, tools bool, count *counted) talk {
		params := responses.ResponseNewParams{
			Model: p.prefix + scenario,
			Store: openai.Bool(false),
			Input: responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{
				responses.ResponseInputItemParamOfMessage("Please.", responses.EasyInputMessageRoleUser),
			}},
		}
		if tools {
			for _, name := range names {
				params.Tools = append(params.Tools, responses.ToolParamOfFunction(name, map[string]any{"type": "object"}, false))
			}
		}
		return &responsesTalk{p.client(option.WithHTTPClient(count), option.WithMaxRetries(1)), params}
	}, func(err error) string {
		var e *openai.Error
		var f failure
		switch {
		case errors.As(err, &e):
			return e.RawJSON()
		case errors.As(err, &f):
			return f.body
		}
		return ""
	}}
}

func (c *responsesTalk) ask(t *testing.T, stream bool) (answer, error) {
	t.Helper()
	got, err := c.send(t, stream)
	if err != nil {
		return answer{}, err
	}
	if got.Status != "completed" {
		return answer{}, failure{got.RawJSON()}
	}
	a := answer{text: got.OutputText()}
	for _, i := range got.Output {
		switch i.Type {
		case "function_call":
			a.calls = append(a.calls, called{i.CallID, i.Name, i.Arguments.OfString})
			c.append(responses.ResponseInputItemParamOfFunctionCall(i.Arguments.OfString, i.CallID, i.Name))
		case "reasoning":
			r := i.AsReasoning().ToParam()
			c.append(responses.ResponseInputItemUnionParam{OfReasoning: &r})
		}
	}
	return a, nil
}

func (c *responsesTalk) append(item responses.ResponseInputItemUnionParam) {
	c.params.Input.OfInputItemList = append(c.params.Input.OfInputItemList, item)
}

// send is a request; of a stream it returns the state at its end.
func (c *responsesTalk) send(t *testing.T, stream bool) (*responses.Response, error) {
	t.Helper()
	if !stream {
		return c.client.Responses.New(t.Context(), c.params)
	}
	s := c.client.Responses.NewStreaming(t.Context(), c.params)
	defer s.Close()
	var last responses.ResponseStreamEventUnion
	for s.Next() {
		last = s.Current()
	}
	switch {
	case s.Err() != nil:
		return nil, s.Err()
	case last.Type == "error":
		return nil, failure{last.RawJSON()}
	case last.Type != "response.completed" && last.Type != "response.failed":
		t.Fatalf("the stream ends in %s", last.RawJSON())
	}
	return &last.Response, nil
}

func (c *responsesTalk) returned(results []string, calls []called) {
	for i, call := range calls {
		output := responses.ResponseInputItemParamOfFunctionCallOutput(results[i])
		output.OfFunctionCallOutput.CallID = openai.String(call.id)
		c.append(output)
	}
}
