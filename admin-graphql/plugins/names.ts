/**
 * Short names: `accounts` and `account(id:)` instead of `allAccounts` and `accountById`, `id` instead of `rowId` (there are no
 * global object ids here), arguments without SQL's `p_`, and enum values spelled as the tables spell them.
 */
import 'postgraphile';

export const namesPlugin: GraphileConfig.Plugin = {
  name: 'AdminNamesPlugin',
  version: '1.0.0',
  inflection: {
    replace: {
      camelCase(previous, _options, text) {
        // per_1k is per1k, as elsewhere in this project
        return (previous?.(text) ?? text).replace(
          /(\d)([A-Z])(?![a-z])/g,
          (_, digit: string, letter: string) => `${digit}${letter.toLowerCase()}`,
        );
      },
      _attributeName(_previous, _options, { attributeName, codec }) {
        const name = codec.attributes[attributeName]?.extensions?.tags?.name;
        return this.coerceToGraphQLName(typeof name === 'string' ? name : attributeName);
      },
      _allRows(_previous, _options, resource) {
        return this.camelCase(this.pluralize(this._singularizedResourceName(resource)));
      },
      rowByUnique(previous, _options, details) {
        return details.unique.isPrimary === true
          ? this.camelCase(this.tableType(details.resource.codec))
          : (previous?.(details) ?? '');
      },
      argument(previous, _options, details) {
        const { param } = details;
        const name = param.name?.replace(/^p_/, '') ?? null;
        return previous?.({ ...details, param: { ...param, name } }) ?? '';
      },
      enumValue(_previous, _options, value) {
        return value;
      },
    },
  },
};
