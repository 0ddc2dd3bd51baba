// SPDX-License-Identifier: Apache-2.0

// Sends one notification and waits until it is sent or has ended; Go's own library, nothing to install.
//
//	STENTOR_API_URL=http://127.0.0.1:8080 STENTOR_API_KEY=stn_... go run send.go ORDER ADDRESS NAME
//
// Prints "ID STATUS"; exit code 0 when it was sent, 1 when it ended otherwise or was refused, 2 when the API could not be reached.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand"
	"net/http"
	"os"
	"strconv"
	"time"
)

const (
	tries = 8
	wait  = 60 * time.Second
)

type answer struct {
	ID         string `json:"id"`
	Status     string `json:"-"`
	RawStatus  any    `json:"status"` // a word; in a problem document the HTTP status
	ReasonCode string `json:"reason_code"`
	Field      string `json:"field"`
	Detail     string `json:"detail"`
}

var (
	sent = map[string]bool{"sent": true, "delivered": true, "opened": true, "clicked": true}
	ends = map[string]bool{"suppressed": true, "superseded": true, "failed": true, "bounced": true, "complained": true}
)

func again(status int) bool {
	return status == 408 || status == 429 || status == 500 || (status >= 502 && status <= 504)
}

func once(client *http.Client, method, path string, body []byte, key string) (*http.Response, answer, error) {
	var got answer
	api := os.Getenv("STENTOR_API_URL")
	if api == "" {
		api = "http://127.0.0.1:8080"
	}
	request, err := http.NewRequest(method, api+path, bytes.NewReader(body))
	if err != nil {
		return nil, got, err
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("STENTOR_API_KEY"))
	request.Header.Set("Content-Type", "application/json")
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, got, err
	}
	defer response.Body.Close()
	err = json.NewDecoder(response.Body).Decode(&got)
	got.Status, _ = got.RawStatus.(string)
	return response, got, err
}

// Repeats what may succeed later: no answer, 408, 429 and 5xx. A repeated POST needs the header Idempotency-Key: the first may have been
// accepted although its answer was lost.
func call(client *http.Client, method, path string, body []byte, key string) (*http.Response, answer) {
	for number := 0; number < tries; number++ {
		// Not all clients at once.
		pause := math.Min(30, 0.2*math.Pow(2, float64(number))) * (0.5 + rand.Float64()/2)
		response, got, err := once(client, method, path, body, key)
		if err == nil && !again(response.StatusCode) {
			return response, got
		}
		why := fmt.Sprint(err)
		if err == nil {
			why = response.Status + " " + got.Detail
			after, _ := strconv.ParseFloat(response.Header.Get("Retry-After"), 64)
			pause = math.Max(pause, after)
		}
		fmt.Fprintf(os.Stderr, "%s %s: %s; again in %.1f s\n", method, path, why, pause)
		time.Sleep(time.Duration(pause * float64(time.Second)))
	}
	os.Exit(2)
	return nil, answer{}
}

func main() {
	rand.Seed(time.Now().UnixNano())
	order, address, name := os.Args[1], os.Args[2], os.Args[3]
	client := &http.Client{Timeout: 30 * time.Second}
	body, _ := json.Marshal(map[string]any{
		"to": address, "template": "welcome", "variables": map[string]string{"name": name}, "correlation_id": order,
	})
	// The key names what must happen once, and is the same after a restart of this program: the order, not the time or a random number.
	response, got := call(client, "POST", "/v1/notifications", body, "welcome/"+order)
	if response.StatusCode != 202 {
		fmt.Fprintln(os.Stderr, got.Field, got.Detail)
		os.Exit(1)
	}
	place := response.Header.Get("Location")
	for until := time.Now().Add(wait); !sent[got.Status] && !ends[got.Status] && time.Now().Before(until); {
		time.Sleep(200 * time.Millisecond)
		if response, got = call(client, "GET", place, nil, ""); response.StatusCode != 200 {
			fmt.Fprintln(os.Stderr, got.Detail)
			os.Exit(1)
		}
	}
	fmt.Println(got.ID, got.Status, got.ReasonCode)
	if !sent[got.Status] {
		os.Exit(1)
	}
}
