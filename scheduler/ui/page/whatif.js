// "What if": a form that says what a pod would ask for, and what the server would do with it now:
// where it would go, whom it would displace, or why it would wait. Nothing is changed by asking.

import {askWhatIf} from './api.js';
import {el} from './dom.js';
import {formatCount, formatLost, formatMemory, plural} from './format.js';
import {modelsOf} from './model.js';
import {cluster} from './store.js';
import {ruleMeaning} from './words.js';

// The form's values from what a waiting pod asks; null: a pod of one GPU.
function valuesOf(pod) {
  const values = {namespace: cluster.namespaces[0] ?? 'default', priorityClass: '', kind: 'whole',
                  count: 1, share: 50, memory: 16384, profile: '1g.10gb', models: '', runtime: ''};
  if (!pod) return values;
  values.namespace = pod.namespace;
  values.priorityClass = pod.priorityClass ?? '';
  const {asks} = pod;
  if (!asks) return values;
  values.models = asks.models.join(', ');
  if (asks.expectedRuntimeSeconds) values.runtime = String(Math.round(asks.expectedRuntimeSeconds / 60));
  const device = asks.devices[0];
  if (!device) return values;
  values.count = device.count;
  if (device.kind === 'mig') Object.assign(values, {kind: 'mig', profile: device.profile});
  if (device.kind === 'shared') values.kind = 'shared';
  if (device.kind === 'share' && device.mib) Object.assign(values, {kind: 'memory', memory: device.mib});
  if (device.kind === 'share' && !device.mib && device.milli && device.milli < 1000) {
    Object.assign(values, {kind: 'share', share: device.milli / 10});
  }
  return values;
}

// A Pod object as kube-scheduler would hand it over.
export function podOf(values) {
  const annotations = {};
  const limits = {};
  const count = String(values.count);
  if (values.kind === 'whole') limits['nvidia.com/gpu'] = count;
  if (values.kind === 'shared') limits['nvidia.com/gpu.shared'] = count;
  if (values.kind === 'mig') limits[`nvidia.com/mig-${values.profile.replace('+', '.')}`] = count;
  if (values.kind === 'share') annotations['tranche.dev/gpu-fraction'] = String(Number(values.share) / 100);
  if (values.kind === 'memory') annotations['tranche.dev/gpu-memory'] = String(values.memory);
  if (values.kind === 'share' || values.kind === 'memory') annotations['tranche.dev/gpu-count'] = count;
  if (values.models.trim()) annotations['tranche.dev/model'] = values.models.split(/[\s,]+/).filter(Boolean).join(',');
  if (values.runtime) annotations['tranche.dev/expected-runtime'] = `${values.runtime}m`;
  const spec = {containers: [{name: 'main', image: 'example.invalid/what-if:1',
                              resources: {limits, requests: limits}}]};
  if (values.priorityClass) spec.priorityClassName = values.priorityClass;
  return {apiVersion: 'v1', kind: 'Pod', spec, status: {phase: 'Pending'},
          metadata: {namespace: values.namespace, name: 'what-if', uid: 'what-if', annotations}};
}

const KINDS = [['whole', 'whole GPUs'], ['share', 'a share of each GPU'], ['memory', 'memory of each GPU'],
               ['shared', 'time-shared GPUs'], ['mig', 'MIG slices']];

export class WhatIf {
  #dialog;
  #form;
  #answer;
  #title;
  #opener = null;  // what had the focus

  constructor(dialog) {
    this.#dialog = dialog;
    this.#title = el('h2', {id: 'whatif-title'});
    this.#answer = el('div', {class: 'answer', role: 'status', 'aria-live': 'polite'});
    this.#form = el('form', {method: 'dialog'});
    const close = el('button', {type: 'button', class: 'close', 'aria-label': 'Close'}, '×');
    close.addEventListener('click', () => dialog.close());
    // What opened it may have been drawn anew meanwhile.
    dialog.addEventListener('close', () => {
      const key = this.#opener?.dataset?.key;
      if (key && !this.#opener.isConnected) document.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus();
    });
    dialog.append(el('div', {class: 'dialog-head'}, this.#title, close),
      el('p', {class: 'quiet-text'}, 'Asks the scheduler what it would do with such a pod now. Nothing is changed.'),
      this.#form, this.#answer);
    this.#form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#ask();
    });
    this.#form.addEventListener('input', () => this.#fit());
  }

  open(pod) {
    this.#opener = document.activeElement;
    const values = valuesOf(pod);
    this.#title.textContent = pod ? `What if ${pod.name} asked for …` : 'What if a pod asked for …';
    this.#answer.replaceChildren();
    this.#form.replaceChildren(...this.#fields(values));
    this.#fit();
    this.#dialog.showModal();
  }

  #fields(values) {
    const models = modelsOf(cluster.nodes);
    const profiles = [...new Set(cluster.nodes.flatMap((node) => node.gpus.flatMap((gpu) =>
      (gpu.mig ?? []).map((instance) => instance.profile))))].sort();
    const list = (id, entries) => el('datalist', {id}, entries.map((value) => el('option', {value})));
    const field = (label, name, more, unit) => el('label', {class: `field field-${name}`}, el('span', {}, label),
      el('span', {class: 'entry'}, el('input', {name, value: values[name], autocomplete: 'off', ...more}),
         unit ? el('span', {class: 'unit'}, unit) : null));
    return [
      list('whatif-namespaces', cluster.namespaces), list('whatif-models', models),
      list('whatif-profiles', profiles),
      el('div', {class: 'fields'},
        field('Namespace', 'namespace', {required: true, list: 'whatif-namespaces', pattern: '[a-z0-9]([a-z0-9\\-]*[a-z0-9])?'}),
        field('Priority class', 'priorityClass', {placeholder: 'none'}),
        el('label', {class: 'field'}, el('span', {}, 'Kind'), el('select', {name: 'kind'},
          KINDS.map(([value, text]) => el('option', {value, selected: value === values.kind}, text)))),
        field('How many', 'count', {type: 'number', min: 1, max: 64, required: true}),
        field('Share of each', 'share', {type: 'number', min: 0.1, max: 99.9, step: 0.1}, '%'),
        field('Memory of each', 'memory', {type: 'number', min: 1, max: 1000000}, 'MiB'),
        field('Profile', 'profile', {list: 'whatif-profiles'}),
        field('GPU models', 'models', {placeholder: 'any', list: 'whatif-models'}),
        field('Runs for', 'runtime', {type: 'number', min: 1, placeholder: 'not said'}, 'min')),
      el('div', {class: 'actions'}, el('button', {type: 'submit', class: 'primary'}, 'Ask the scheduler')),
    ];
  }

  // Shows the fields the kind needs.
  #fit() {
    const kind = this.#form.elements.kind.value;
    for (const [name, wanted] of [['share', 'share'], ['memory', 'memory'], ['profile', 'mig']]) {
      const field = this.#form.querySelector(`.field-${name}`);
      field.hidden = kind !== wanted;
      field.querySelector('input').disabled = kind !== wanted;
    }
  }

  async #ask() {
    const values = {share: '', memory: '', profile: '', ...Object.fromEntries(new FormData(this.#form))};
    this.#answer.replaceChildren(el('p', {class: 'quiet-text'}, 'Asking …'));
    try {
      const {pods} = await askWhatIf(podOf(values));
      this.#answer.replaceChildren(...answerOf(pods[0]));
    } catch (error) {
      this.#answer.replaceChildren(el('p', {class: 'bad'}, `The server refused the question: ${error.message}`));
    }
  }
}

function devicesText(devices) {
  const known = devices.filter((device) => device.index !== null);
  if (known.length === 0) return plural(devices.length, 'GPU');
  return known.map((device) => {
    const share = device.migProfile ?? (device.milli === 1000 ? null
      : [device.milli ? `${device.milli / 10} %` : null, formatMemory(device.mib)].filter(Boolean).join(', '));
    return share ? `GPU ${device.index} (${share})` : `GPU ${device.index}`;
  }).join(', ');
}

function answerOf(result) {
  if (!result.fits) {
    return [el('p', {class: 'verdict no'}, 'It would wait'),
      el('p', {}, result.reason?.text ?? 'nothing fits'),
      result.reason?.detail ? el('p', {class: 'quiet-text'}, result.reason.detail) : null].filter(Boolean);
  }
  const where = el('p', {}, 'On ', el('strong', {}, result.node), `: ${devicesText(result.devices)}`);
  if (result.victims.length === 0) return [el('p', {class: 'verdict yes'}, 'It would start at once'), where];
  const rows = result.evictions.map((victim) => el('li', {}, el('strong', {}, victim.pod),
    ` of ${victim.leaf ?? 'no team'} loses ${formatLost(victim.lostGpuSeconds)} of work`));
  return [el('p', {class: 'verdict after'}, `It would start after ${formatCount(result.victims.length)} other ` +
             `${result.victims.length === 1 ? 'pod has' : 'pods have'} given way`),
    where, el('ul', {}, rows), el('p', {class: 'quiet-text'}, `Why: ${ruleMeaning(result.rule)} (rule ${result.rule}).`)];
}
