// Pages of other origins, which ask the server by gRPC-web.

/** Runs in a page: calls a method with a message and a token. Returns the status and the text of the answer, or the error that the page sees. */
async function call(server, method, message, token) {
  const body = new Uint8Array([0, 0, 0, message.length >> 8, message.length & 255, ...message]);
  const headers = { 'content-type': 'application/grpc-web+proto', 'x-grpc-web': '1', authorization: `Bearer ${token}` };
  try {
    const answer = await fetch(`${server}/decree.v1.${method}`, { method: 'POST', headers, body });
    const text = new TextDecoder('latin1').decode(await answer.arrayBuffer());
    return { status: answer.headers.get('grpc-status') ?? /grpc-status:(\d+)/.exec(text)?.[1], text };
  } catch (error) {
    return { error: error.message };
  }
}

export const pages = {
  async pages_of_a_declared_origin_ask_the_server({ open, until, act, assert, forgive }) {
    forgive(/request beyond the server/, /blocked by CORS policy/, /ERR_FAILED/, /status of 40[13]/);
    const { server, named, other, decide } = await act('pages');
    const { token } = await act('token', { name: 'viewer' });
    const page = await open();
    await page.goto(named);
    const decided = await page.evaluate(call, server, 'DecisionService/Decide', decide, token);
    assert(decided.status === '0' && decided.text.match(/web-[a-z0-9]{5}/g).length === 2, JSON.stringify(decided));
    const listed = await until(page, 'the ReplicaSets of the cluster', async (source, ...args) => {
      const answer = await eval(`(${source})`)(...args);
      return answer.text?.includes('shop-7d4b9c') && answer;
    }, call.toString(), server, 'InspectionService/ListReplicaSets', [], token);
    assert(listed.status === '0', JSON.stringify(listed));
    const stranger = await page.evaluate(call, server, 'DecisionService/Decide', decide, 'nonsense');
    assert(stranger.status === '16', JSON.stringify(stranger));

    const said = [];
    page.on('console', (message) => said.push(message.text()));
    await page.goto(other);
    const refused = await page.evaluate(call, server, 'DecisionService/Decide', decide, token);
    assert(refused.error === 'Failed to fetch', JSON.stringify(refused));
    await until(page, 'the reason', () => true);
    assert(said.some((text) => text.includes('blocked by CORS policy')), JSON.stringify(said));
  },
};
