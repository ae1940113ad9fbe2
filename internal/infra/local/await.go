package local

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

const (
	// pollInterval is how often a starting child is asked how it is.
	pollInterval = 15 * time.Millisecond
	// pollTimeout bounds one such question.
	pollTimeout = 5 * time.Second
)

// probe is a health endpoint, and who asks.
type probe struct {
	config *rest.Config
	url    string
}

// answered accepts any answer: the child serves.
func answered(int) bool { return true }

// answeredOK accepts 200: the child is as it should be.
func answeredOK(status int) bool { return status == http.StatusOK }

// await polls until an answer is accepted. It gives up when the context or one of the processes ends; the first of them
// is the one that is asked.
func await(ctx context.Context, probe probe, accept func(status int) bool, needed ...*process) error {
	client, err := rest.HTTPClientFor(probe.config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	defer client.CloseIdleConnections()
	client.Timeout = pollTimeout
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		if err := firstEnd(needed); err != nil {
			return err
		}
		status, err := ask(ctx, client, probe.url)
		if err == nil && accept(status) {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("status %d", status)
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("waiting for %s: %w", needed[0].name, context.Cause(ctx)), fmt.Errorf("asking %s: %w", probe.url, err))
		case <-tick.C:
		}
	}
}

// firstEnd says whether one of the processes has ended.
func firstEnd(needed []*process) error {
	for _, p := range needed {
		select {
		case <-p.done:
			return p.exitError()
		default:
		}
	}
	return nil
}

// ask asks once and returns the status of the answer.
func ask(ctx context.Context, client *http.Client, url string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}
