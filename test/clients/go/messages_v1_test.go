package clients_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
)

// messagesV1 speaks Messages with version 1 of anthropic-sdk-go.
type messagesV1 struct {
	client anthropic.Client
	params anthropic.MessageNewParams
}

func speakerV1() speaker {
	return speaker{"anthropic-sdk-go 1", func(p place, scenario string, tools bool, count *counted) talk {
		params := anthropic.MessageNewParams{
			Model: anthropic.Model(p.prefix + scenario), MaxTokens: 1000,
			Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Please."))},
		}
		if tools {
			for _, name := range names {
				params.Tools = append(params.Tools, anthropic.ToolUnionParam{OfTool: &anthropic.ToolParam{Name: name}})
			}
		}
		client := anthropic.NewClient(option.WithBaseURL(strings.TrimSuffix(p.address, "/v1")), option.WithAPIKey("unused"),
			option.WithHTTPClient(count), option.WithMaxRetries(1))
		return &messagesV1{client, params}
	}, func(err error) string {
		var e *anthropic.Error
		if !errors.As(err, &e) {
			return ""
		}
		return e.RawJSON()
	}}
}

func (c *messagesV1) ask(t *testing.T, stream bool) (answer, error) {
	t.Helper()
	got, err := c.send(t, stream)
	if err != nil {
		return answer{}, err
	}
	c.params.Messages = append(c.params.Messages, got.ToParam())
	var a answer
	for _, b := range got.Content {
		switch b := b.AsAny().(type) {
		case anthropic.TextBlock:
			a.text += b.Text
		case anthropic.ToolUseBlock:
			a.calls = append(a.calls, called{b.ID, b.Name, string(b.Input)})
		}
	}
	return a, nil
}

func (c *messagesV1) send(t *testing.T, stream bool) (*anthropic.Message, error) {
	t.Helper()
	if !stream {
		return c.client.Messages.New(t.Context(), c.params)
	}
	s := c.client.Messages.NewStreaming(t.Context(), c.params)
	defer s.Close()
	var all anthropic.Message
	for s.Next() {
		if err := all.Accumulate(s.Current()); err != nil {
			t.Fatal(err)
		}
	}
	return &all, s.Err()
}

func (c *messagesV1) returned(results []string, calls []called) {
	var blocks []anthropic.ContentBlockParamUnion
	for i, call := range calls {
		blocks = append(blocks, anthropic.NewToolResultBlock(call.id, results[i], false))
	}
	c.params.Messages = append(c.params.Messages, anthropic.NewUserMessage(blocks...))
}
